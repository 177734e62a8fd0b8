// Dot products of int8 for AVX-512 (F, BW, DQ, VL) without VNNI. See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/avx512/vec.h"

namespace vllm::kernels::avx512 {

// The same method as in isa/avx2/dots.h.
struct Codes {
  __m512i magnitude;
  __mmask64 negative;
  static Codes FromLevels(__m512i levels) {
    const __m512i value = _mm512_xor_si512(levels, _mm512_set1_epi8(-128));
    return {_mm512_abs_epi8(value), _mm512_movepi8_mask(value)};
  }
  static Codes Load(const uint8_t* p) { return FromLevels(_mm512_loadu_si512(p)); }
};

// `Levels` is the Codes type of the instruction set.
template <typename Levels>
struct LevelTable {
  __m512i table;
  explicit LevelTable(const uint8_t* levels)
      : table(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)))) {}
  void Load(const uint8_t* p, Levels& low, Levels& high) const {
    const __m512i mask = _mm512_set1_epi8(15);
    const __m512i bytes = _mm512_loadu_si512(p);
    low = Levels::FromLevels(_mm512_shuffle_epi8(table, _mm512_and_si512(bytes, mask)));
    high = Levels::FromLevels(_mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask)));
  }
};
using CodeLevels = LevelTable<Codes>;

struct IntSums {
  __m512i v;

  static IntSums Start(int32_t /*offset*/) { return {_mm512_setzero_si512()}; }
  static __m512i Broadcast(uint32_t unit) { return _mm512_set1_epi32(static_cast<int>(unit)); }
  void AddDot(const Codes& codes, __m512i x) {
    const __m512i with_sign = _mm512_mask_sub_epi8(x, codes.negative, _mm512_setzero_si512(), x);
    const __m512i pairs = _mm512_maddubs_epi16(codes.magnitude, with_sign);
    v = _mm512_add_epi32(v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  void AddDotAt(const Codes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  IntSums Plus(const IntSums& other) const { return {_mm512_add_epi32(v, other.v)}; }
  Vec ToFloat() const { return {_mm512_cvtepi32_ps(v)}; }
};

// The same method as in isa/avx2/dots.h.
struct FourBitCodes {
  __m512i v;
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    const __m512i mask = _mm512_set1_epi8(15);
    const __m512i bytes = _mm512_loadu_si512(p);
    low.v = _mm512_and_si512(bytes, mask);
    high.v = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
  }
};

struct FourBitSums {
  __m512i v;
  int32_t offset;

  static FourBitSums Start(int32_t offset) { return {_mm512_setzero_si512(), offset}; }
  static __m512i Broadcast(uint32_t unit) { return _mm512_set1_epi32(static_cast<int>(unit)); }
  void AddDot(const FourBitCodes& codes, __m512i x) { v = _mm512_add_epi16(v, _mm512_maddubs_epi16(codes.v, x)); }
  void AddDotAt(const FourBitCodes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  FourBitSums Plus(const FourBitSums& other) const { return {_mm512_add_epi16(v, other.v), offset + other.offset}; }
  Vec ToFloat() const {
    const __m512i sums = _mm512_madd_epi16(v, _mm512_set1_epi16(1));
    return {_mm512_cvtepi32_ps(_mm512_add_epi32(sums, _mm512_set1_epi32(offset)))};
  }
};

struct Bytes {
  __m512i v;
  static Bytes Load(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  Bytes And(uint8_t mask) const { return {_mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)))}; }
  Bytes Or(const Bytes& other) const { return {_mm512_or_si512(v, other.v)}; }
  template <int kBits>
  Bytes ShiftLeft() const {
    return {_mm512_slli_epi16(v, kBits)};
  }
  template <int kBits>
  Bytes ShiftRight() const {
    return {_mm512_srli_epi16(v, kBits)};
  }
};

struct SixBitCodes {
  __m512i v;
  static SixBitCodes From(const Bytes& bytes) { return {bytes.v}; }
};

struct SixBitSums {
  __m512i v;

  static SixBitSums Start(int32_t offset) { return {_mm512_set1_epi32(offset)}; }
  void AddTwoDotsAt(const SixBitCodes& first, const SixBitCodes& second, const uint32_t* first_unit,
                    const uint32_t* second_unit) {
    const __m512i x = _mm512_set1_epi32(static_cast<int>(*first_unit)),
                  y = _mm512_set1_epi32(static_cast<int>(*second_unit));
    const __m512i pairs = _mm512_add_epi16(_mm512_maddubs_epi16(first.v, x), _mm512_maddubs_epi16(second.v, y));
    v = _mm512_add_epi32(v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  SixBitSums Plus(const SixBitSums& other) const { return {_mm512_add_epi32(v, other.v)}; }
  Vec ToFloat() const { return {_mm512_cvtepi32_ps(v)}; }
};

static inline float LargestMagnitude(const float* x) {
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  __m512i largest[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int i = 0; i < 8; ++i) {
    largest[i % 2] = _mm512_max_epu32(largest[i % 2], _mm512_and_si512(mask, _mm512_loadu_si512(x + 16 * i)));
  }
  const uint32_t bits = _mm512_reduce_max_epu32(_mm512_max_epu32(largest[0], largest[1]));
  const __m128i v = _mm_cvtsi32_si128(static_cast<int>(bits >= 0x7f800000u ? 0x7fc00000u : bits));
  return _mm_cvtss_f32(_mm_castsi128_ps(v));
}

static inline void StoreCodes(const float* x, Vec factor, int8_t* codes, int32_t* sums) {
  __m512i v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * i), factor.v));
  // The pack instructions work within 128-bit lanes, so the dwords are permuted at the end.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
  const __m512i bytes = _mm512_permutexvar_epi32(order, packed);
  _mm512_storeu_si512(codes, bytes);
  // sad_epu8 needs unsigned bytes, so 128 is added to each code, and 8 * 128 is subtracted from each sum.
  const __m512i biased = _mm512_sad_epu8(_mm512_xor_si512(bytes, _mm512_set1_epi8(-128)), _mm512_setzero_si512());
  const __m512i eights = _mm512_sub_epi64(biased, _mm512_set1_epi64(8 * 128));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), _mm512_cvtepi64_epi32(eights));
}

struct WideScaleShape {
  static constexpr int kRows = 8, kPanels = 2;
  static constexpr int kFewRows = 4, kPanelsFewRows = 4;
};
struct NarrowScaleShape {
  static constexpr int kRows = 12, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using FourBitShape = NarrowScaleShape;
struct SixBitShape {
  static constexpr int kRows = 6, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};

}  // namespace vllm::kernels::avx512
