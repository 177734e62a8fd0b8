// GGML formats with blocks of 256 columns, whose groups of 16 or 32 columns have quantized scales. See
// quant_blocks.inl. Included inside an instruction set's namespace.

struct FormatQ2_K : BlockRows<256, 84> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b + 80), dmin = HalfToFloat(b + 82);
    Unroll<16>([&](auto i) {
      constexpr int kHalf = i.value / 8, kShift = i.value % 8 / 2 * 2, kByte = i.value % 2 * 16;
      const uint8_t scale = b[i.value];
      const Bytes codes = (LoadBytes(b + 16 + kHalf * 32 + kByte) >> kShift) & 3;
      sink(Vec::Sub(Vec::Mul(UnsignedToFloat(codes), Vec::Set1(d * static_cast<float>(scale & 0x0f))),
                    Vec::Set1(dmin * static_cast<float>(scale >> 4))));
    });
  }
};

struct FormatQ3_K : BlockRows<256, 110> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const uint8_t* scales = b + 96;
    const float d = HalfToFloat(b + 108);
    Unroll<16>([&](auto i) {
      constexpr int kHalf = i.value / 8, kShift = i.value % 8 / 2 * 2, kByte = i.value % 2 * 16;
      const int low = (scales[i.value % 8] >> (i.value / 8 * 4)) & 0x0f;
      const int high = (scales[8 + i.value % 4] >> (i.value / 4 * 2)) & 3;
      const Bytes codes = (LoadBytes(b + 32 + kHalf * 32 + kByte) >> kShift) & 3;
      // Subtracts 4 from codes whose mask bit is clear.
      const Bytes bits = (LoadBytes(b + kByte) >> (i.value / 2)) & 1;
      sink(Vec::Mul(SignedToFloat(codes + (bits << 2) - 4),
                    Vec::Set1(d * static_cast<float>((low | (high << 4)) - 32))));
    });
  }
};

// Q4_K and Q5_K store eight scales and eight minimums of six bits each in twelve bytes. SixBitScale returns scale
// kIndex, SixBitMinimum returns minimum kIndex.
template <int kIndex>
static inline float SixBitScale(const uint8_t* p) {
  if constexpr (kIndex < 4) {
    return static_cast<float>(p[kIndex] & 0x3f);
  } else {
    return static_cast<float>((p[kIndex + 4] & 0x0f) | ((p[kIndex - 4] >> 2) & 0x30));
  }
}
template <int kIndex>
static inline float SixBitMinimum(const uint8_t* p) {
  if constexpr (kIndex < 4) {
    return static_cast<float>(p[kIndex + 4] & 0x3f);
  } else {
    return static_cast<float>((p[kIndex + 4] >> 4) | ((p[kIndex] >> 2) & 0x30));
  }
}

struct FormatQ4_K : BlockRows<256, 144> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b), dmin = HalfToFloat(b + 2);
    Unroll<8>([&](auto i) {
      const Vec scale = Vec::Set1(d * SixBitScale<i.value>(b + 4));
      const Vec minimum = Vec::Set1(dmin * SixBitMinimum<i.value>(b + 4));
      Unroll<2>([&](auto j) {
        const Bytes codes = LoadBytes(b + 16 + i.value / 2 * 32 + j.value * 16);
        const Bytes half = i.value % 2 == 0 ? LowHalves(codes) : HighHalves(codes);
        sink(Vec::Sub(Vec::Mul(UnsignedToFloat(half), scale), minimum));
      });
    });
  }
};

struct FormatQ5_K : BlockRows<256, 176> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b), dmin = HalfToFloat(b + 2);
    Unroll<8>([&](auto i) {
      const Vec scale = Vec::Set1(d * SixBitScale<i.value>(b + 4));
      const Vec minimum = Vec::Set1(dmin * SixBitMinimum<i.value>(b + 4));
      Unroll<2>([&](auto j) {
        const Bytes codes = LoadBytes(b + 48 + i.value / 2 * 32 + j.value * 16);
        const Bytes half = i.value % 2 == 0 ? LowHalves(codes) : HighHalves(codes);
        const Bytes fifth = ((LoadBytes(b + 16 + j.value * 16) >> i.value) & 1) << 4;
        sink(Vec::Sub(Vec::Mul(UnsignedToFloat(half | fifth), scale), minimum));
      });
    });
  }
};

struct FormatQ6_K : BlockRows<256, 210> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b + 208);
    Unroll<16>([&](auto i) {
      constexpr int kHalf = i.value / 8, kQuarter = i.value % 8 / 2;
      const Bytes low = LoadBytes(b + kHalf * 64 + i.value % 4 * 16);
      const Bytes high = (LoadBytes(b + 128 + kHalf * 32 + i.value % 2 * 16) >> (kQuarter * 2)) & 3;
      const Bytes codes = (kQuarter < 2 ? LowHalves(low) : HighHalves(low)) | (high << 4);
      const auto scale = static_cast<int8_t>(b[192 + i.value]);
      sink(Vec::Mul(SignedToFloat(codes - 32), Vec::Set1(d * static_cast<float>(scale))));
    });
  }
};

struct FormatIQ4_XS : BlockRows<256, 136> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const float d = HalfToFloat(b);
    Unroll<8>([&](auto i) {
      const int low = (b[4 + i.value / 2] >> (i.value % 2 * 4)) & 0x0f;
      const int high = (b[2 + i.value / 4] >> (i.value % 4 * 2)) & 3;
      const Vec scale = Vec::Set1(d * static_cast<float>((low | (high << 4)) - 32));
      const Bytes codes = LoadBytes(b + 8 + i.value * 16);
      sink(Vec::Mul(SignedToFloat(Iq4Values(LowHalves(codes))), scale));
      sink(Vec::Mul(SignedToFloat(Iq4Values(HighHalves(codes))), scale));
    });
  }
};
