// Dot products of int8 for AVX2. See dots_generic.h for the names' meaning.
#pragma once

#include "kernels/simd/vec_avx2.h"

namespace vllm::avx2 {

// vpmaddubsw wants one side unsigned and saturates where both are large: the magnitudes of the weights, whose signs go
// to x, stay below 2^15.
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

struct CodeLevels {
  __m256i table;
  explicit CodeLevels(const uint8_t* levels)
      : table(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)))) {}
  void Load(const uint8_t* p, Codes& low, Codes& high) const {
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i l[2], h[2];
    for (int i = 0; i < 2; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * i));
      l[i] = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, mask));
      h[i] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
    }
    low = Codes::FromLevels(l[0], l[1]);
    high = Codes::FromLevels(h[0], h[1]);
  }
};

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

struct CodeSum {
  __m128i biased = _mm_setzero_si128();  // each code counts 128 too much
  int32_t bias = 0;

  void Store(Vec x, int8_t* out) {
    const __m256i a = _mm256_cvtps_epi32(x.lo), b = _mm256_cvtps_epi32(x.hi);
    // The packs work in halves of a register; what they cross is put right at the end.
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    const __m128i bytes = _mm_packs_epi16(low, high);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    biased = _mm_add_epi64(biased, _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128()));
    bias += 16 * 128;
  }
  int32_t Get() const { return _mm_cvtsi128_si32(biased) + _mm_extract_epi16(biased, 4) - bias; }
};

// Sixteen registers, two of them a sum.
struct WideScaleShape {
  static constexpr int kRows = 4, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct NarrowScaleShape {
  static constexpr int kRows = 2, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};

}  // namespace vllm::avx2
