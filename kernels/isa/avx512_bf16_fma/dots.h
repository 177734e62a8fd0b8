// Products of bfloat16 pairs for AVX-512 with BF16, by two FMAs instead of vdpbf16ps. The results are the same:
// vdpbf16ps adds the product of the second column with one rounding, and then that of the first ("VDPBF16PS" in Intel's
// Software Developer's Manual), and both sets of kernels run with FlushDenormals. On Emerald Rapids, FMAs multiply
// twice as many columns per cycle.
#pragma once

#include "kernels/isa/avx512_bf16/dots.h"

namespace vllm::kernels::avx512_bf16_fma {

using avx512::kQueryTile;
using avx512::kScoreRegisters;
using avx512::Vec;
using avx512_bf16::BFloat16Shape;
using avx512_bf16::FlushDenormals;

// Two adjacent columns of each of sixteen rows, or the same two columns of x in every lane.
struct Pairs {
  __m512 first, second;
};
static inline Pairs LoadPairs(const uint8_t* p) {
  const __m512i pairs = _mm512_loadu_si512(p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
// A unit of x is a float.
inline constexpr int64_t kUnitsPerPair = 2;
static inline Pairs FirstOnly(Pairs pairs) { return {pairs.first, _mm512_setzero_ps()}; }
static inline Pairs SecondOnly(Pairs pairs) { return {_mm512_setzero_ps(), pairs.second}; }
static inline Pairs BroadcastPair(const uint32_t* unit, int64_t stride) {
  float first, second;
  __builtin_memcpy(&first, unit, sizeof(first));
  __builtin_memcpy(&second, unit + stride, sizeof(second));
  return {_mm512_set1_ps(first), _mm512_set1_ps(second)};
}
static inline Vec AddPairs(Vec sum, Pairs w, Pairs x) {
  return {_mm512_fmadd_ps(x.first, w.first, _mm512_fmadd_ps(x.second, w.second, sum.v))};
}
// Rounds sixteen values to bfloat16, ties to even, and widens them again.
static inline __m512i RoundToBFloat16(__m512 x) {
  const __m256i rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16);
}
// Rounds thirty-two values to bfloat16 and stores them as thirty-two units.
static inline void StorePairs(const float* x, uint32_t* out) {
  _mm512_storeu_si512(out, RoundToBFloat16(_mm512_loadu_ps(x)));
  _mm512_storeu_si512(out + 16, RoundToBFloat16(_mm512_loadu_ps(x + 16)));
}

// Queries and softmax weights of attention, see impl/kv_elements.inl.
struct PairFactors {
  static void StoreQuery(Vec x, int64_t d, int64_t end, float* query, int64_t num_queries) {
    float rounded[Vec::kLanes];
    _mm512_storeu_si512(rounded, RoundToBFloat16(x.v));
    for (int64_t i = d; i < end; ++i) query[i * num_queries] = rounded[i - d];
  }
  static Pairs QueryPair(const float* query, int64_t d, int64_t num_queries) {
    return {_mm512_set1_ps(query[d * num_queries]), _mm512_set1_ps(query[(d + 1) * num_queries])};
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { _mm512_storeu_si512(weights + t, RoundToBFloat16(x.v)); }
  static Pairs WeightPair(const float* weights, int64_t t) {
    return {_mm512_set1_ps(weights[t]), _mm512_set1_ps(weights[t + 1])};
  }
};

// Whether kernels prefetch weights even if x has a single row.
inline constexpr bool kPrefetchOneRow = true;
// Thirty-two registers: 12 queries x 2 vectors of V take 24 accumulators, 4 elements of V and 1 broadcast.
inline constexpr int kValueQueries = 12, kValueChunks = 2;

}  // namespace vllm::kernels::avx512_bf16_fma
