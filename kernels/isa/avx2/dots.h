// Dot products of int8 for AVX2. See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/avx2/vec.h"

namespace vllm::kernels::avx2 {

// vpmaddubsw takes one unsigned operand and saturates. The unsigned operand is the magnitude of the weights, and the
// signs of the weights are applied to x. So the sums of two products stay below 2^15.
struct Codes {
  __m256i value[2], magnitude[2];
  static Codes FromLevels(__m256i a, __m256i b) {
    const __m256i offset = _mm256_set1_epi8(-128);
    Codes codes;
    codes.value[0] = _mm256_xor_si256(a, offset);
    codes.value[1] = _mm256_xor_si256(b, offset);
    for (int i = 0; i < 2; ++i) codes.magnitude[i] = _mm256_abs_epi8(codes.value[i]);
    return codes;
  }
  static Codes Load(const uint8_t* p) {
    return FromLevels(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)));
  }
};

// `Levels` is the Codes type of the instruction set.
template <typename Levels>
struct LevelTable {
  __m256i table;
  explicit LevelTable(const uint8_t* levels)
      : table(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)))) {}
  void Load(const uint8_t* p, Levels& low, Levels& high) const {
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i l[2], h[2];
    for (int i = 0; i < 2; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * i));
      l[i] = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, mask));
      h[i] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
    }
    low = Levels::FromLevels(l[0], l[1]);
    high = Levels::FromLevels(h[0], h[1]);
  }
};
using CodeLevels = LevelTable<Codes>;

struct IntSums {
  __m256i v[2];

  static IntSums Start(int32_t /*offset*/) { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
  static __m256i Broadcast(uint32_t unit) { return _mm256_set1_epi32(static_cast<int>(unit)); }
  void AddDot(const Codes& codes, __m256i x) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs = _mm256_maddubs_epi16(codes.magnitude[i], _mm256_sign_epi8(x, codes.value[i]));
      v[i] = _mm256_add_epi32(v[i], _mm256_madd_epi16(pairs, ones));
    }
  }
  void AddDotAt(const Codes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  IntSums Plus(const IntSums& other) const {
    return {{_mm256_add_epi32(v[0], other.v[0]), _mm256_add_epi32(v[1], other.v[1])}};
  }
  Vec ToFloat() const { return {_mm256_cvtepi32_ps(v[0]), _mm256_cvtepi32_ps(v[1])}; }
};

// Here the codes are the unsigned operand of vpmaddubsw.
struct FourBitCodes {
  __m256i v[2];
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    const __m256i mask = _mm256_set1_epi8(15);
    for (int i = 0; i < 2; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * i));
      low.v[i] = _mm256_and_si256(bytes, mask);
      high.v[i] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    }
  }
};

struct FourBitSums {
  __m256i v[2];  // two sixteen-bit sums per row
  int32_t offset;

  static FourBitSums Start(int32_t offset) { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}, offset}; }
  static __m256i Broadcast(uint32_t unit) { return _mm256_set1_epi32(static_cast<int>(unit)); }
  void AddDot(const FourBitCodes& codes, __m256i x) {
    for (int i = 0; i < 2; ++i) v[i] = _mm256_add_epi16(v[i], _mm256_maddubs_epi16(codes.v[i], x));
  }
  void AddDotAt(const FourBitCodes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  FourBitSums Plus(const FourBitSums& other) const {
    return {{_mm256_add_epi16(v[0], other.v[0]), _mm256_add_epi16(v[1], other.v[1])}, offset + other.offset};
  }
  Vec ToFloat() const {
    const __m256i ones = _mm256_set1_epi16(1), start = _mm256_set1_epi32(offset);
    return {_mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(v[0], ones), start)),
            _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(v[1], ones), start))};
  }
};

struct Bytes {
  __m256i v[2];
  static Bytes Load(const uint8_t* p) {
    return {{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))}};
  }
  Bytes And(uint8_t mask) const {
    const __m256i all = _mm256_set1_epi8(static_cast<char>(mask));
    return {{_mm256_and_si256(v[0], all), _mm256_and_si256(v[1], all)}};
  }
  Bytes Or(const Bytes& other) const {
    return {{_mm256_or_si256(v[0], other.v[0]), _mm256_or_si256(v[1], other.v[1])}};
  }
  template <int kBits>
  Bytes ShiftLeft() const {
    return {{_mm256_slli_epi16(v[0], kBits), _mm256_slli_epi16(v[1], kBits)}};
  }
  template <int kBits>
  Bytes ShiftRight() const {
    return {{_mm256_srli_epi16(v[0], kBits), _mm256_srli_epi16(v[1], kBits)}};
  }
};

struct SixBitCodes {
  __m256i v[2];
  static SixBitCodes From(const Bytes& bytes) { return {{bytes.v[0], bytes.v[1]}}; }
};

struct SixBitSums {
  __m256i v[2];

  static SixBitSums Start(int32_t offset) { return {{_mm256_set1_epi32(offset), _mm256_set1_epi32(offset)}}; }
  void AddTwoDotsAt(const SixBitCodes& first, const SixBitCodes& second, const uint32_t* first_unit,
                    const uint32_t* second_unit) {
    const __m256i x = _mm256_set1_epi32(static_cast<int>(*first_unit)),
                  y = _mm256_set1_epi32(static_cast<int>(*second_unit));
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(first.v[i], x), _mm256_maddubs_epi16(second.v[i], y));
      v[i] = _mm256_add_epi32(v[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
  }
  SixBitSums Plus(const SixBitSums& other) const {
    return {{_mm256_add_epi32(v[0], other.v[0]), _mm256_add_epi32(v[1], other.v[1])}};
  }
  Vec ToFloat() const { return {_mm256_cvtepi32_ps(v[0]), _mm256_cvtepi32_ps(v[1])}; }
};

static inline float LargestMagnitude(const float* x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256i largest[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int i = 0; i < 16; ++i) {
    const __m256i magnitude = _mm256_castps_si256(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + 8 * i)));
    largest[i % 2] = _mm256_max_epu32(largest[i % 2], magnitude);
  }
  const __m256i eight = _mm256_max_epu32(largest[0], largest[1]);
  __m128i v = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0xb1));
  const __m128i infinity = _mm_set1_epi32(0x7f800000);
  const __m128i is_finite = _mm_cmpgt_epi32(infinity, v);
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_blendv_epi8(_mm_set1_epi32(0x7fc00000), v, is_finite)));
}

static inline void StoreCodes(const float* x, Vec factor, int8_t* codes, int32_t* sums) {
  // The pack instructions work within 128-bit halves, so the dwords are permuted at the end.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int half = 0; half < 2; ++half) {
    __m256i v[4];
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 32 * half + 8 * i), factor.lo));
    }
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    const __m256i bytes = _mm256_permutevar8x32_epi32(packed, order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + 32 * half), bytes);
    // sad_epu8 needs unsigned bytes, so 128 is added to each code, and 8 * 128 is subtracted from each sum.
    const __m256i biased = _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    const __m256i eights = _mm256_sub_epi64(biased, _mm256_set1_epi64x(8 * 128));
    const __m256i narrow = _mm256_permutevar8x32_epi32(eights, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + 4 * half), _mm256_castsi256_si128(narrow));
  }
}

// There are sixteen registers, and an accumulator takes two.
struct WideScaleShape {
  static constexpr int kRows = 4, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct NarrowScaleShape {
  static constexpr int kRows = 2, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct FourBitShape {
  static constexpr int kRows = 4, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using SixBitShape = FourBitShape;

}  // namespace vllm::kernels::avx2
