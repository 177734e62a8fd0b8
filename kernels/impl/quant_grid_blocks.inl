// GGML's IQ1, IQ2 and IQ3 formats: blocks of 256 columns, in which indexes select runs of eight or four columns from a
// grid (kernels/matrix/block_grids.h). See quant_blocks.inl. All products are exact, so their order does not matter.
// Included inside an instruction set's namespace.

static inline uint32_t LoadUInt16(const uint8_t* p) { return static_cast<uint32_t>(p[0] | p[1] << 8); }
static inline uint32_t LoadUInt32(const uint8_t* p) { return LoadUInt16(p) | LoadUInt16(p + 2) << 16; }

// Returns the columns of two entries of eight columns.
static inline Bytes TwoEntries(const uint8_t (*grid)[8], uint32_t first, uint32_t second) {
  uint8_t columns[16];
  __builtin_memcpy(columns, grid[first], 8);
  __builtin_memcpy(columns + 8, grid[second], 8);
  return LoadBytes(columns);
}
// Returns the columns of four entries of four columns. index(i) is the index of entry i.
template <typename Index>
static inline Bytes FourEntries(const uint8_t (*grid)[4], Index&& index) {
  uint8_t columns[16];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(columns + 4 * i, grid[index(i)], 4);
  return LoadBytes(columns);
}

// Negates the columns whose bits are set: bit i of `low` is that of column i, bit i of `high` that of column i + 8.
static inline Vec WithSigns(Bytes magnitudes, uint32_t low, uint32_t high) {
  const uint8_t bits[2] = {static_cast<uint8_t>(low), static_cast<uint8_t>(high)};
  const Bytes mask = -(FifthBits(bits) >> 4);
  return SignedToFloat((magnitudes ^ mask) - mask);
}
// Completes seven sign bits: the eighth makes the number of set bits even.
static inline uint32_t EvenSigns(uint32_t bits) {
  bits &= 0x7f;
  return bits | static_cast<uint32_t>(__builtin_parity(bits)) << 7;
}

static inline float ScaleNibble(const uint8_t* scales, int i) {
  return static_cast<float>((scales[i / 2] >> (i % 2 * 4)) & 0x0f);
}

struct FormatIQ2_XXS : BlockRows<256, 66> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // 32 columns: four indexes, then four times seven sign bits and the scale.
      const uint8_t* group = b + 2 + i / 2 * 8;
      const uint8_t* index = group + i % 2 * 2;
      const uint32_t signs = LoadUInt32(group + 4);
      const Vec scale = Vec::Set1(d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f);
      const uint32_t own = signs >> (i % 2 * 14);
      const Bytes entries = TwoEntries(kBlockGrids.iq2_xxs, index[0], index[1]);
      sink(Vec::Mul(WithSigns(entries, EvenSigns(own), EvenSigns(own >> 7)), scale));
    }
  }
};

struct FormatIQ2_XS : BlockRows<256, 74> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // Eight columns: nine bits of index and seven of signs.
      const uint32_t first = LoadUInt16(b + 2 + i * 4), second = LoadUInt16(b + 4 + i * 4);
      const Vec scale = Vec::Set1(d * (0.5f + ScaleNibble(b + 66, i)) * 0.25f);
      const Bytes entries = TwoEntries(kBlockGrids.iq2_xs, first & 511, second & 511);
      sink(Vec::Mul(WithSigns(entries, EvenSigns(first >> 9), EvenSigns(second >> 9)), scale));
    }
  }
};

struct FormatIQ2_S : BlockRows<256, 82> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // Eight low bits of each index, then eight signs, then two high bits of each index.
      const uint8_t *low = b + 2 + 2 * i, *signs = b + 34 + 2 * i;
      const auto high = static_cast<uint32_t>(b[66 + i / 2] >> (i % 2 * 4));
      const Vec scale = Vec::Set1(d * (0.5f + ScaleNibble(b + 74, i)) * 0.25f);
      const Bytes entries = TwoEntries(kBlockGrids.iq2_s, low[0] | (high & 3) << 8, low[1] | (high >> 2 & 3) << 8);
      sink(Vec::Mul(WithSigns(entries, signs[0], signs[1]), scale));
    }
  }
};

struct FormatIQ3_XXS : BlockRows<256, 98> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // 32 columns: four times seven sign bits and the scale.
      const uint8_t* index = b + 2 + i * 4;
      const uint32_t signs = LoadUInt32(b + 66 + i / 2 * 4);
      const Vec scale = Vec::Set1(d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f);
      const uint32_t own = signs >> (i % 2 * 14);
      const Bytes entries = FourEntries(kBlockGrids.iq3_xxs, [index](int j) { return index[j]; });
      sink(Vec::Mul(WithSigns(entries, EvenSigns(own), EvenSigns(own >> 7)), scale));
    }
  }
};

struct FormatIQ3_S : BlockRows<256, 110> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // Eight low bits of each index, then one high bit of each, then the signs and a scale per 32 columns.
      const uint8_t *low = b + 2 + i * 4, *signs = b + 74 + i * 2;
      const auto high = static_cast<uint32_t>(b[66 + i / 2] >> (i % 2 * 4));
      const Vec scale = Vec::Set1(d * (1.0f + 2.0f * ScaleNibble(b + 106, i / 2)));
      const Bytes entries =
          FourEntries(kBlockGrids.iq3_s, [low, high](int j) { return low[j] | (high >> j & 1) << 8; });
      sink(Vec::Mul(WithSigns(entries, signs[0], signs[1]), scale));
    }
  }
};

// Returns eight times the values of two entries of IQ1. Each entry has its own delta, which is -1/8 if its bit is set
// and 1/8 otherwise.
static inline Vec IQ1Values(uint32_t first, uint32_t second, bool first_delta, bool second_delta) {
  using Words = uint64_t __attribute__((vector_size(16)));
  constexpr uint64_t kEach = 0x0101010101010101u;
  const Words deltas = {first_delta ? 0xff * kEach : kEach, second_delta ? 0xff * kEach : kEach};
  return SignedToFloat(TwoEntries(kBlockGrids.iq1, first, second) + reinterpret_cast<Bytes>(deltas));
}

struct FormatIQ1_S : BlockRows<256, 50> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    for (int i = 0; i < 16; ++i) {
      // 32 columns: four times three high bits of the index, the scale, and the sign of the delta.
      const uint8_t* low = b + 2 + i * 2;
      const uint32_t word = LoadUInt16(b + 34 + i / 2 * 2);
      const uint32_t high = word >> (i % 2 * 6);
      const Vec scale = Vec::Set1(d * static_cast<float>(2 * (word >> 12 & 7) + 1) * 0.125f);
      const bool delta = (word & 0x8000) != 0;
      sink(Vec::Mul(IQ1Values(low[0] | (high & 7) << 8, low[1] | (high >> 3 & 7) << 8, delta, delta), scale));
    }
  }
};

struct FormatIQ1_M : BlockRows<256, 56> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    // Four words, each with four scales of three bits and four bits of the block's half-precision scale.
    const uint8_t* scales = b + 48;
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= LoadUInt16(scales + 2 * i) >> 12 << (4 * i);
    const uint8_t half[2] = {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
    const float d = HalfToFloat(half);
    for (int i = 0; i < 16; ++i) {
      const uint8_t* low = b + i * 2;
      const uint32_t high = b[32 + i];  // for each of two indexes: three high bits, and the sign of the delta
      const uint32_t multiple = LoadUInt16(scales + i / 4 * 2) >> (i % 4 * 3) & 7;
      const Vec scale = Vec::Set1(d * static_cast<float>(2 * multiple + 1) * 0.125f);
      sink(Vec::Mul(
          IQ1Values(low[0] | (high & 7) << 8, low[1] | (high >> 4 & 7) << 8, (high & 8) != 0, (high & 0x80) != 0),
          scale));
    }
  }
};
