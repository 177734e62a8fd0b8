// Unpack a block of a panel to one signed byte per code, in the order of eight-bit codes, after subtracting the zero
// point. Included inside an instruction set's namespace.

inline constexpr int64_t kUnitsPerBlock = kBlockColumns / 4;
inline constexpr int64_t kBlockBytes = kUnitsPerBlock * kUnitRowBytes;  // of unpacked codes
inline constexpr int64_t kRunsOfFourBits = kUnitsPerBlock / 2;          // runs of 64 bytes with two codes each

class SignedCodes {
 public:
  explicit SignedCodes(int32_t zero) : zero_(_mm512_set1_epi8(static_cast<char>(zero))) {}
  [[gnu::always_inline]] void Store(__m512i codes, uint8_t* to) const {
    _mm512_store_si512(to, _mm512_sub_epi8(codes, zero_));
  }

 private:
  __m512i zero_;
};

struct UnpackBytes {
  SignedCodes codes;

  [[gnu::always_inline]] void operator()(const uint8_t* block, uint8_t* to) const {
    for (int64_t unit = 0; unit < kUnitsPerBlock; ++unit) codes.Store(Bytes::Load(block + unit * 64).v, to + unit * 64);
  }
};

struct UnpackLevels {
  SignedCodes codes;
  CodeLevels levels;

  [[gnu::always_inline]] void operator()(const uint8_t* block, uint8_t* to) const {
    for (int64_t run = 0; run < kRunsOfFourBits; ++run) {
      Codes low, high;
      levels.Load(block + run * 64, low, high);
      codes.Store(low.v, to + run * 64);
      codes.Store(high.v, to + (run + kRunsOfFourBits) * 64);
    }
  }
};

struct UnpackFourBits {
  SignedCodes codes;

  [[gnu::always_inline]] void operator()(const uint8_t* block, uint8_t* to) const {
    for (int64_t run = 0; run < kRunsOfFourBits; ++run) {
      FourBitCodes low, high;
      FourBitCodes::Load(block + run * 64, low, high);
      codes.Store(low.v, to + run * 64);
      codes.Store(high.v, to + (run + kRunsOfFourBits) * 64);
    }
  }
};

struct UnpackFiveBits {
  SignedCodes codes;

  [[gnu::always_inline]] void operator()(const uint8_t* block, uint8_t* to) const {
    Bytes upper = Bytes::Load(block + kRunsOfFourBits * 64);
    for (int64_t run = 0; run < kRunsOfFourBits; ++run) {
      const Bytes lower = Bytes::Load(block + run * 64);
      codes.Store(lower.And(15).Or(upper.ShiftLeft<4>().And(16)).v, to + run * 64);
      codes.Store(lower.ShiftRight<4>().And(15).Or(upper.And(16)).v, to + (run + kRunsOfFourBits) * 64);
      upper = upper.ShiftRight<1>();
    }
  }
};
