// GGML formats with blocks of 32 columns. Visit passes the values of one block to `sink` as Vecs, columns ascending.
// Every product and sum is rounded separately, as in GGML's reference code. Included inside an instruction set's
// namespace.

static inline Bytes LowHalves(Bytes b) { return b & 0x0f; }
static inline Bytes HighHalves(Bytes b) { return b >> 4; }

// Rows whose blocks are self-contained.
template <int kBlockColumns, int kBlockBytes>
struct BlockRows {
  static constexpr int kColumns = kBlockColumns;
  static constexpr int kBytes = kBlockBytes;
  struct Row {
    const uint8_t* data;
    const uint8_t* Block(int64_t block) const { return data + block * kBytes; }
  };
  static Row RowOf(const CheckpointQuantMatrixView& w, int64_t n) { return {w.data + n * w.row_bytes}; }
  static void Prefetch(const Row& row, int64_t block, int64_t ahead) {
    for (int offset = 0; offset < kBytes; offset += 64) __builtin_prefetch(row.Block(block) + ahead + offset);
  }
};

struct FormatQ8_0 : BlockRows<32, 34> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    sink(Vec::Mul(SignedToFloat(LoadBytes(b + 2)), d));
    sink(Vec::Mul(SignedToFloat(LoadBytes(b + 18)), d));
  }
};

struct FormatQ4_0 : BlockRows<32, 18> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    const Bytes codes = LoadBytes(b + 2);
    sink(Vec::Mul(SignedToFloat(LowHalves(codes) - 8), d));
    sink(Vec::Mul(SignedToFloat(HighHalves(codes) - 8), d));
  }
};

struct FormatQ4_1 : BlockRows<32, 20> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    const Vec m = Vec::Set1(HalfToFloat(b + 2));
    const Bytes codes = LoadBytes(b + 4);
    sink(Vec::Add(Vec::Mul(UnsignedToFloat(LowHalves(codes)), d), m));
    sink(Vec::Add(Vec::Mul(UnsignedToFloat(HighHalves(codes)), d), m));
  }
};

struct FormatQ5_0 : BlockRows<32, 22> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    const Bytes codes = LoadBytes(b + 6);
    sink(Vec::Mul(SignedToFloat((LowHalves(codes) | FifthBits(b + 2)) - 16), d));
    sink(Vec::Mul(SignedToFloat((HighHalves(codes) | FifthBits(b + 4)) - 16), d));
  }
};

struct FormatQ5_1 : BlockRows<32, 24> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    const Vec m = Vec::Set1(HalfToFloat(b + 2));
    const Bytes codes = LoadBytes(b + 8);
    sink(Vec::Add(Vec::Mul(UnsignedToFloat(LowHalves(codes) | FifthBits(b + 4)), d), m));
    sink(Vec::Add(Vec::Mul(UnsignedToFloat(HighHalves(codes) | FifthBits(b + 6)), d), m));
  }
};

// Returns the IQ4_NL values of the codes: -127, -104, -83, -65, -49, -35, -22, -10, then the positive ones.
static inline Bytes Iq4Values(Bytes codes) {
  constexpr Bytes kValues = {129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113};
  return LookUp(kValues, codes);
}

struct FormatIQ4_NL : BlockRows<32, 18> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfToFloat(b));
    const Bytes codes = LoadBytes(b + 2);
    sink(Vec::Mul(SignedToFloat(Iq4Values(LowHalves(codes))), d));
    sink(Vec::Mul(SignedToFloat(Iq4Values(HighHalves(codes))), d));
  }
};

// Returns twice the values of E2M1 codes. The values are 0, 0.5, 1, 1.5, 2, 3, 4, 6, then the same with a minus sign.
static inline Vec TwiceE2M1(Bytes codes) {
  constexpr Bytes kValues = {0, 1, 2, 3, 4, 6, 8, 12, 0, 255, 254, 253, 252, 250, 248, 244};
  return SignedToFloat(LookUp(kValues, codes));
}

struct FormatMXFP4 : BlockRows<32, 17> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* b = row.Block(block);
    const Vec d = Vec::Set1(HalfPowerOfTwo(b[0]));
    const Bytes codes = LoadBytes(b + 1);
    sink(Vec::Mul(TwiceE2M1(LowHalves(codes)), d));
    sink(Vec::Mul(TwiceE2M1(HighHalves(codes)), d));
  }

  // Returns 2^(exponent - 128), half the scale.
  static inline float HalfPowerOfTwo(uint8_t exponent) {
    const uint32_t bits = exponent < 2 ? uint32_t{0x00200000} << exponent : (uint32_t{exponent} - 1) << 23;
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

struct FormatNVFP4 : BlockRows<64, 36> {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    // Four scales, then the codes: columns i and i + 8 of each group of 16 share a byte.
    const uint8_t* b = row.Block(block);
    for (int i = 0; i < 4; ++i) {
      uint8_t bytes[16];
      __builtin_memcpy(bytes, b + 4 + i * 8, 8);
      for (int j = 0; j < 8; ++j) bytes[8 + j] = bytes[j] >> 4;
      sink(Vec::Mul(TwiceE2M1(LowHalves(LoadBytes(bytes))), Vec::Set1(HalfUnsignedE4M3(b[i]))));
    }
  }

  // Returns half the scale, an e4m3 number without a sign, as GGML reads it: 0x7f is 0, and the sign bit is ignored.
  static inline float HalfUnsignedE4M3(uint8_t code) {
    if (code == 0x7f) return 0.0f;
    // Shifted left by twenty, the bits are a float that is 2^120 times too small. This holds for subnormals too.
    return __builtin_bit_cast(float, (uint32_t{code} & 0x7f) << 20) * 0x1p119f;
  }
};
