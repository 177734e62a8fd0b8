// GGML formats with the values -1, 0 and 1 (TQ2_0: also 2), in blocks of 256 columns. See quant_blocks.inl. Included
// inside an instruction set's namespace.

struct FormatTQ1_0 : BlockRows<256, 54> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b + 52));
    // Bytes hold five base-3 digits. Columns 16 to 31 have the same digit of other bytes, columns 32 to 63 the next
    // one.
    uint8_t power = 1;
    for (int digit = 0; digit < 5; ++digit, power = static_cast<uint8_t>(3 * power)) {
      sink(Vec::Mul(TopDigit(LoadBytes(b) * power), d));
      sink(Vec::Mul(TopDigit(LoadBytes(b + 16) * power), d));
    }
    power = 1;
    for (int digit = 0; digit < 5; ++digit, power = static_cast<uint8_t>(3 * power)) {
      sink(Vec::Mul(TopDigit(LoadBytes(b + 32) * power), d));
    }
    // The last four bytes hold four digits each.
    constexpr Bytes kPowers = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    uint8_t last[16];
    for (int i = 0; i < 16; i += 4) __builtin_memcpy(last + i, b + 48, 4);
    sink(Vec::Mul(TopDigit(LoadBytes(last) * kPowers), d));
  }

  // Bytes are fractions of 256. Returns their first base-3 digit, minus 1.
  static inline Vec TopDigit(Bytes fraction) {
    const Bytes digit = ((fraction > 85) & 1) + ((fraction > 170) & 1);
    return SignedToFloat(digit - 1);
  }
};

struct FormatTQ2_0 : BlockRows<256, 66> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b + 64));
    for (int i = 0; i < 16; ++i) {
      const Bytes codes = (LoadBytes(b + i / 8 * 32 + i % 2 * 16) >> static_cast<uint8_t>(i % 8 / 2 * 2)) & 3;
      sink(Vec::Mul(SignedToFloat(codes - 1), d));
    }
  }
};
