// Converts sixteen checkpoint codes to a Vec, for AVX2 with F16C. See isa/generic/codes.h for the contracts.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/vec.h"

namespace vllm::kernels::avx2 {

using Bytes = uint8_t __attribute__((vector_size(16)));

static inline Bytes LoadBytes(const uint8_t* p) {
  Bytes b;
  __builtin_memcpy(&b, p, sizeof(b));
  return b;
}

static inline Vec UnsignedToFloat(Bytes b) {
  const auto v = reinterpret_cast<__m128i>(b);
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)))};
}

static inline Vec SignedToFloat(Bytes b) {
  const auto v = reinterpret_cast<__m128i>(b);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
}

// Shifted left by seven, the magnitude is a half float that is 2^8 times too small. This holds for subnormals too.
static inline Vec Float8ToFloat(Bytes b) {
  const __m256i v = _mm256_cvtepu8_epi16(reinterpret_cast<__m128i>(b));
  const __m256i magnitude = _mm256_and_si256(v, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(v, magnitude), 8);
  const __m256i nan =
      _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)), _mm256_set1_epi16(0x7e00));
  const __m256i half = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign), nan);
  const __m256 up = _mm256_set1_ps(256.0f);
  return {_mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), up),
          _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), up)};
}

static inline Bytes LookUp(Bytes table, Bytes b) {
  return reinterpret_cast<Bytes>(_mm_shuffle_epi8(reinterpret_cast<__m128i>(table), reinterpret_cast<__m128i>(b)));
}

// LookUpFloats for eight lanes.
static inline __m256 LookUpFloats(__m256 low, __m256 high, __m256i index) {
  // Bit 3 of the index becomes the sign bit, which selects the half.
  const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index), upper);
}

static inline Vec LookUpFloats(const float* values, Bytes b) {
  const auto v = reinterpret_cast<__m128i>(b);
  const __m256 low = _mm256_loadu_ps(values), high = _mm256_loadu_ps(values + 8);
  return {LookUpFloats(low, high, _mm256_cvtepu8_epi32(v)),
          LookUpFloats(low, high, _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)))};
}

static inline Bytes FifthBits(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  const __m128i each = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const __m128i spread = _mm_shuffle_epi8(_mm_cvtsi32_si128(bits), each);
  const __m128i mask = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  return reinterpret_cast<Bytes>(_mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(spread, mask), mask), _mm_set1_epi8(0x10)));
}

static inline float HalfToFloat(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

// StepFunction for eight lanes: a binary search in four steps. Each step looks up a threshold by the result of the
// steps before.
static inline __m256 StepFunction(__m256 x, const float* t, const float* values) {
  const __m256 thirds = _mm256_setr_ps(t[1], t[5], t[9], t[13], t[1], t[5], t[9], t[13]);
  const __m256 fourths = _mm256_setr_ps(t[0], t[2], t[4], t[6], t[8], t[10], t[12], t[14]);
  // A comparison returns -1 where x is above the threshold, so subtracting the result adds 1.
  const auto above = [x](__m256 middle) { return _mm256_castps_si256(_mm256_cmp_ps(x, middle, _CMP_GT_OQ)); };
  const auto next = [&](__m256i index, __m256 middle) {
    return _mm256_sub_epi32(_mm256_add_epi32(index, index), above(middle));
  };
  const __m256i first = above(_mm256_set1_ps(t[7]));
  const __m256 upper = _mm256_castsi256_ps(first);
  __m256i index = _mm256_sub_epi32(_mm256_setzero_si256(), first);
  index = next(index, _mm256_blendv_ps(_mm256_set1_ps(t[3]), _mm256_set1_ps(t[11]), upper));
  index = next(index, _mm256_permutevar8x32_ps(thirds, index));
  index = next(index, _mm256_permutevar8x32_ps(fourths, index));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_loadu_ps(values), index),
                          _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + 8), index), upper);
}

static inline Vec StepFunction(Vec x, const float* thresholds, const float* values) {
  return {StepFunction(x.lo, thresholds, values), StepFunction(x.hi, thresholds, values)};
}

static inline void StoreHalf(float value, uint8_t* out) {
  const auto bits =
      static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
  __builtin_memcpy(out, &bits, sizeof(bits));
}

// There are sixteen registers. 3 x 2 accumulators take two each, and the factors need the others.
inline constexpr int kDotRows = 3;
inline constexpr int kDotColumns = 2;
// With at most this many rows of x, the codes of w are multiplied as they are decoded instead of being unpacked first.
inline constexpr int kDirectRows = 2;
// Rows of w per pass in that case if x has more than one row.
inline constexpr int kDirectWeightRowsFewX = 2;

}  // namespace vllm::kernels::avx2
