// Multiplies int8 tiles by panels of codes of 4 to 8 bits with AMX. Included inside a namespace with `Registers`. The
// instruction adds products exactly, and the sums of a scale are scaled as in impl/tiles/linear_quant.inl, so the
// results are those of the VNNI kernels.

// With at most this many rows, the VNNI kernels do the work, and x is packed for them.
inline constexpr int64_t kVnniRows = 4;

inline constexpr int64_t kUnitsPerBlock = kBlockColumns / 4;
inline constexpr int64_t kBlockBytes = kUnitsPerBlock * kUnitRowBytes;  // of unpacked codes

// Unpack a block of a panel to one byte per code, in the order of eight-bit codes.
struct UnpackBytes {
  static constexpr bool kIsUnpacked = true;
};

// Calls load(p, low, high) for each run at p, to get its lower and its upper nibbles as codes.
template <typename Loaded, typename Load>
[[gnu::always_inline]] static inline void UnpackNibbles(const uint8_t* block, uint8_t* to, const Load& load) {
  constexpr int64_t kRuns = kUnitsPerBlock / 2;
  for (int64_t run = 0; run < kRuns; ++run) {
    Loaded low, high;
    load(block + run * 64, low, high);
    _mm512_store_si512(to + run * 64, low.v);
    _mm512_store_si512(to + (run + kRuns) * 64, high.v);
  }
}

struct UnpackLevels {
  static constexpr bool kIsUnpacked = false;
  CodeLevels levels;

  void operator()(const uint8_t* block, uint8_t* to) const {
    UnpackNibbles<Codes>(block, to, [this](const uint8_t* p, Codes& low, Codes& high) { levels.Load(p, low, high); });
  }
};

struct UnpackFourBits {
  static constexpr bool kIsUnpacked = false;

  void operator()(const uint8_t* block, uint8_t* to) const {
    UnpackNibbles<FourBitCodes>(block, to, FourBitCodes::Load);
  }
};

struct UnpackFiveBits {
  static constexpr bool kIsUnpacked = false;

  void operator()(const uint8_t* block, uint8_t* to) const {
    constexpr int64_t kRuns = kUnitsPerBlock / 2;
    Bytes upper = Bytes::Load(block + kRuns * 64);
    for (int64_t run = 0; run < kRuns; ++run) {
      const Bytes lower = Bytes::Load(block + run * 64);
      _mm512_store_si512(to + run * 64, lower.And(15).Or(upper.ShiftLeft<4>().And(16)).v);
      _mm512_store_si512(to + (run + kRuns) * 64, lower.ShiftRight<4>().And(15).Or(upper.And(16)).v);
      upper = upper.ShiftRight<1>();
    }
  }
};

struct UnpackSixBits {
  static constexpr bool kIsUnpacked = false;

  void operator()(const uint8_t* block, uint8_t* to) const {
    constexpr int64_t kRuns = kUnitsPerBlock / 2;
    Bytes first = Bytes::Load(block + kRuns * 64), second = Bytes::Load(block + (kRuns + 1) * 64);
    for (int64_t run = 0; run < kRuns; ++run) {
      const Bytes lower = Bytes::Load(block + run * 64);
      _mm512_store_si512(to + run * 64, lower.And(15).Or(first.ShiftLeft<4>().And(48)).v);
      _mm512_store_si512(to + (run + kRuns) * 64, lower.ShiftRight<4>().And(15).Or(second.ShiftLeft<4>().And(48)).v);
      first = first.ShiftRight<2>();
      second = second.ShiftRight<2>();
    }
  }
};

// kColumns: columns per scale of the weight. Scales: see impl/tiles/quant_scales.inl
template <typename Unpack, int kColumns, typename Scales>
struct QuantPasses {
  Unpack unpack;
  const PackedQuantView& w;
  const PackedActivationsView& packed;
  TileOutput output;
  int64_t units_per_dot;

  template <int kPanels, int kTiles>
  void Run(const PassInput<kTiles>& x, int64_t panel) const {
    constexpr int64_t kBlocksPerGroup = kScaleColumns / kBlockColumns;
    alignas(64) uint8_t unpacked[kPanels][kBlocksPerGroup * kBlockBytes];
    Accumulators<kTiles, kPanels> sums = {};
    const int64_t num_blocks = w.num_blocks(), block_bytes = w.block_bytes();
    for (int64_t block = 0; block < num_blocks; block += kBlocksPerGroup) {
      const int64_t count = block + kBlocksPerGroup < num_blocks ? kBlocksPerGroup : num_blocks - block;
      const uint8_t* codes[kPanels];
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* const from = w.codes + ((panel + p) * num_blocks + block) * block_bytes;
        codes[p] = Unpack::kIsUnpacked ? from : unpacked[p];
        if constexpr (!Unpack::kIsUnpacked) {
          for (int64_t i = 0; i < count; ++i) unpack(from + i * block_bytes, unpacked[p] + i * kBlockBytes);
        }
      }
      AddGroup(x, panel, codes, block, count, sums);
    }
    for (int t = 0; t < kTiles; ++t) {
      for (int64_t r = 0; r < x.num_rows[t]; ++r) {
        for (int p = 0; p < kPanels; ++p) output.Store(x.begin[t] + r, panel + p, Vec::Load(sums.values[t][p][r]));
      }
    }
  }

 private:
  template <int kTiles, int kPanels>
  using Accumulators = PassSums<kTiles, kPanels, float>;

  // Adds `count` blocks, which share a scale of x.
  template <int kPanels, int kTiles>
  void AddGroup(const PassInput<kTiles>& x, int64_t panel, const uint8_t* const (&codes)[kPanels], int64_t block,
                int64_t count, Accumulators<kTiles, kPanels>& sums) const {
    constexpr bool kOneScale = kColumns == kScaleColumns;
    const int64_t num_units = count * kUnitsPerBlock, units_per_scale = kOneScale ? num_units : kColumns / 4;
    const int64_t first_scale = block * kBlockColumns / kColumns;
    const int64_t num_scales = kOneScale ? 1 : num_units / units_per_scale;
    const int64_t scale_end =  // half of the last block may be padding, without a scale
        first_scale + num_scales < w.num_scales() ? first_scale + num_scales : w.num_scales();
    PassSums<kTiles, kPanels, int32_t> dots;
    [[maybe_unused]] Accumulators<kTiles, kPanels> group = {};
    for (int64_t scale = first_scale; scale < scale_end; ++scale) {
      const int64_t unit = (scale - first_scale) * units_per_scale;
      SetSumsToZero<kTiles, kPanels>();
      for (int64_t u = unit; u < unit + units_per_scale; u += units_per_dot) {
        x.LoadAt(block * kUnitsPerBlock + u);
        LoadPanels(codes, u * kUnitRowBytes);
        Unroll<kTiles>([&](auto t) {
          Unroll<kPanels>(
              [&](auto p) { Registers::template AddInt8Dots<kSumRegister<t, p>, kXRegister<t>, kWRegister<p>>(); });
        });
      }
      dots.StoreRegisters();
      for (int p = 0; p < kPanels; ++p) {
        Scales scales;
        scales.Start(w, panel + p);
        const Vec w_scale = scales.Scale(scale);
        Vec minimum;
        if constexpr (Scales::kHasMinimums) minimum = scales.Minimum(scale);
        for (int t = 0; t < kTiles; ++t) {
          const int64_t first = x.begin[t] * packed.num_offsets() + scale * x.num_rows[t];
          for (int64_t r = 0; r < x.num_rows[t]; ++r) {
            const Vec dot = WithOffset(dots.values[t][p][r], packed.offsets[first + r]);
            if constexpr (kOneScale) {
              float* const sum = sums.values[t][p][r];
              Vec::Fma(Vec::Mul(dot, w_scale), XScale(x, t, r, block), Vec::Load(sum)).Store(sum);
            } else {
              float* const sum = group.values[t][p][r];
              Vec scaled = Vec::Fma(dot, w_scale, Vec::Load(sum));
              if constexpr (Scales::kHasMinimums) scaled = Vec::Fma(Vec::Set1(packed.sums[first + r]), minimum, scaled);
              scaled.Store(sum);
            }
          }
        }
      }
    }
    if constexpr (kOneScale) return;
    for (int t = 0; t < kTiles; ++t) {
      for (int p = 0; p < kPanels; ++p) {
        for (int64_t r = 0; r < x.num_rows[t]; ++r) {
          float* const sum = sums.values[t][p][r];
          Vec::Fma(Vec::Load(group.values[t][p][r]), XScale(x, t, r, block), Vec::Load(sum)).Store(sum);
        }
      }
    }
  }

  static Vec WithOffset(const int32_t* dots, int32_t offset) {
    return IntSums{_mm512_load_si512(dots)}.Plus(IntSums::Start(offset)).ToFloat();
  }
  template <int kTiles>
  Vec XScale(const PassInput<kTiles>& x, int t, int64_t r, int64_t block) const {
    const int64_t scale = block * kBlockColumns / kScaleColumns;
    return Vec::Set1(packed.scales[x.begin[t] * packed.num_scales() + scale * x.num_rows[t] + r]);
  }
};

static void LinearQuant(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                        int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  if (x.num_rows <= kVnniRows) {
    return kAvx512Bf16TileKernels.linear_quant(x, w, bias, y, y_stride, panel_begin, panel_end);
  }
  const TileOutput output{bias, y, y_stride, w.num_rows};
  const auto run = [&](auto unpack, auto columns, auto scales) {
    // 64 columns per instruction if they share a scale.
    const bool is_wide = columns == kScaleColumns && w.num_blocks() % 2 == 0;
    const int64_t units_per_dot = is_wide ? 16 : columns < kBlockColumns ? columns / 4 : kUnitsPerBlock;
    RunAllPasses(QuantPasses<decltype(unpack), columns, decltype(scales)>{unpack, w, x, output, units_per_dot}, x,
                 units_per_dot, panel_begin, panel_end);
  };
  const auto by_32 = [&](auto unpack) {
    if (w.has_minimums) return run(unpack, Int<32>(), Float16Scales<32, true>());
    run(unpack, Int<32>(), Float16Scales<32, false>());
  };
  constexpr int kWide = static_cast<int>(kScaleColumns);
  const bool has_supers = w.supers != nullptr;
  if (w.levels != nullptr && has_supers) {
    return run(UnpackLevels{CodeLevels(w.levels)}, Int<32>(), SuperScales<32, false>());
  }
  if (w.levels != nullptr) return run(UnpackLevels{CodeLevels(w.levels)}, Int<32>(), Float16Scales<32, false>());
  if (w.bits == 4 && has_supers) return run(UnpackFourBits(), Int<32>(), SuperScales<32, true>());
  if (w.bits == 4) return by_32(UnpackFourBits());
  if (w.bits == 5 && has_supers) return run(UnpackFiveBits(), Int<32>(), SuperScales<32, true>());
  if (w.bits == 5) return by_32(UnpackFiveBits());
  if (w.bits == 6) return run(UnpackSixBits(), Int<16>(), SuperScales<16, false>());
  if (w.scale_columns == 32) return by_32(UnpackBytes());
  run(UnpackBytes(), Int<kWide>(), Float16Scales<kWide, false>());
}

static void PackInt8ForRows(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1) - TileBegin(to.num_rows, tile);
  if (num_rows <= kVnniRows) return kAvx512Bf16TileKernels.pack_int8(x, x_stride, to, tile);
  PackInt8<RowMajor>(x, x_stride, to, tile);
}
