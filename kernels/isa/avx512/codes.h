// Converts sixteen checkpoint codes to a Vec, for AVX-512. See isa/generic/codes.h for the contracts.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx512/vec.h"

namespace vllm::kernels::avx512 {

using Bytes = uint8_t __attribute__((vector_size(16)));

static inline Bytes LoadBytes(const uint8_t* p) {
  Bytes b;
  __builtin_memcpy(&b, p, sizeof(b));
  return b;
}

static inline Vec UnsignedToFloat(Bytes b) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(reinterpret_cast<__m128i>(b)))};
}

static inline Vec SignedToFloat(Bytes b) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(reinterpret_cast<__m128i>(b)))};
}

// Shifted left by seven, the magnitude is a half float that is 2^8 times too small. This holds for subnormals too.
static inline Vec Float8ToFloat(Bytes b) {
  const __m256i v = _mm256_cvtepu8_epi16(reinterpret_cast<__m128i>(b));
  const __m256i magnitude = _mm256_and_si256(v, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(v, magnitude), 8);
  const __m256i nan =
      _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)), _mm256_set1_epi16(0x7e00));
  const __m256i half = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign), nan);
  return {_mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f))};
}

static inline Bytes LookUp(Bytes table, Bytes b) {
  return reinterpret_cast<Bytes>(_mm_shuffle_epi8(reinterpret_cast<__m128i>(table), reinterpret_cast<__m128i>(b)));
}

static inline Vec LookUpFloats(const float* values, Bytes b) {
  return {_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(reinterpret_cast<__m128i>(b)), _mm512_loadu_ps(values))};
}

static inline Bytes FifthBits(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return reinterpret_cast<Bytes>(_mm_maskz_set1_epi8(bits, 0x10));
}

static inline float HalfToFloat(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

// A binary search in four steps. Each step compares x with the threshold that the earlier steps have selected.
static inline Vec StepFunction(Vec x, const float* thresholds, const float* values) {
  const __m512 all = _mm512_maskz_loadu_ps(0x7fff, thresholds);
  __m512i index = _mm512_maskz_set1_epi32(_mm512_cmp_ps_mask(x.v, _mm512_set1_ps(thresholds[7]), _CMP_GT_OQ), 8);
  for (int half = 4; half >= 1; half /= 2) {
    const __m512 middle = _mm512_permutexvar_ps(_mm512_add_epi32(index, _mm512_set1_epi32(half - 1)), all);
    const __mmask16 above = _mm512_cmp_ps_mask(x.v, middle, _CMP_GT_OQ);
    index = _mm512_mask_add_epi32(index, above, index, _mm512_set1_epi32(half));
  }
  return {_mm512_permutexvar_ps(index, _mm512_loadu_ps(values))};
}

static inline void StoreHalf(float value, uint8_t* out) {
  const auto bits =
      static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
  __builtin_memcpy(out, &bits, sizeof(bits));
}

// Thirty-two registers: 4 x 4 accumulators and the factors.
inline constexpr int kDotRows = 4;
inline constexpr int kDotColumns = 4;
// With at most this many rows of x, the codes of w are multiplied as they are decoded instead of being unpacked first.
inline constexpr int kDirectRows = 3;
// Rows of w per pass in that case if x has more than one row.
inline constexpr int kDirectWeightRowsFewX = 4;

}  // namespace vllm::kernels::avx512
