// How the tile kernels read the scales and minimums of a panel of a PackedQuantView. Included inside an instruction
// set's namespace.

template <int64_t kBytes>
[[gnu::always_inline]] static inline void PrefetchLines(const void* p) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(static_cast<const uint8_t*>(p) + i, 0, 2);
}

// kColumns: columns per scale. block: index of a scale in its row.
template <int kColumns, bool kMinimums>
struct Float16Scales {
  static constexpr bool kHasMinimums = kMinimums;
  const uint16_t *scales, *minimums;

  void Start(const PackedQuantView& w, int64_t panel) {
    const int64_t first = panel * ((w.num_columns + kColumns - 1) / kColumns) * kPanelRows;
    scales = w.scales + first;
    if constexpr (kMinimums) minimums = w.minimums + first;
  }
  [[gnu::always_inline]] Vec Scale(int64_t block) const { return Vec::LoadFloat16(scales + block * kPanelRows); }
  [[gnu::always_inline]] Vec Minimum(int64_t block) const { return Vec::LoadFloat16(minimums + block * kPanelRows); }
  // Prefetches into L2 the lines of kCount blocks, which may belong to a later panel.
  template <int64_t kCount>
  [[gnu::always_inline]] void Prefetch(int64_t block) const {
    PrefetchLines<kCount * kPanelRows * 2>(scales + block * kPanelRows);
    if constexpr (kMinimums) PrefetchLines<kCount * kPanelRows * 2>(minimums + block * kPanelRows);
  }
};

// Integers times super scales. The products are exact, because eleven bits of float16 times eight bits fit into
// float32.
template <int kColumns, bool kMinimums>
struct SuperScales {
  static constexpr bool kHasMinimums = kMinimums;
  static constexpr uint64_t kPerSuper = kSuperColumns / kColumns;  // unsigned, which is faster to divide by
  static constexpr uint64_t kFloatBytes = 2 * kPanelRows, kKinds = kMinimums ? 2 : 1;
  static constexpr uint64_t kSuperBytes = kKinds * (kFloatBytes + kPerSuper * kPanelRows);
  const uint8_t* supers;

  void Start(const PackedQuantView& w, int64_t panel) {
    supers = w.supers + panel * w.num_supers() * static_cast<int64_t>(kSuperBytes);
  }
  [[gnu::always_inline]] Vec Scale(int64_t block) const { return Product(static_cast<uint64_t>(block), 0); }
  [[gnu::always_inline]] Vec Minimum(int64_t block) const { return Product(static_cast<uint64_t>(block), 1); }
  template <int64_t kCount>
  [[gnu::always_inline]] void Prefetch(int64_t block) const {
    constexpr uint64_t kBytesPerBlock = kSuperBytes / kPerSuper;
    PrefetchLines<kCount * kBytesPerBlock>(supers + static_cast<uint64_t>(block) * kBytesPerBlock);
  }

 private:
  [[gnu::always_inline]] Vec Product(uint64_t block, uint64_t kind) const {
    const uint8_t* const super = supers + block / kPerSuper * kSuperBytes;
    const uint8_t* const integers = super + kKinds * kFloatBytes + (kind * kPerSuper + block % kPerSuper) * kPanelRows;
    return Vec::Mul(Vec::LoadInt8(reinterpret_cast<const int8_t*>(integers)),
                    Vec::LoadFloat16(reinterpret_cast<const uint16_t*>(super + kind * kFloatBytes)));
  }
};
