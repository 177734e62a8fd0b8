// Dot products of bfloat16 for AVX-512 with VNNI and BF16. Those of int8 are in isa/avx512_vnni/dots.h.
#pragma once

#include "kernels/isa/avx512_bf16/flush_denormals.h"
#include "kernels/isa/avx512_vnni/dots.h"

namespace vllm::kernels::avx512_bf16 {

using avx512::Bytes;
using avx512::FourBitShape;
using avx512::kPrefetchOneRow;
using avx512::kQueryTile;
using avx512::kScoreRegisters;
using avx512::kValueChunks;
using avx512::kValueQueries;
using avx512::LargestMagnitude;
using avx512::NarrowScaleShape;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::FourBitSums;
using avx512_vnni::IntSums;
using avx512_vnni::SixBitCodes;
using avx512_vnni::SixBitShape;
using avx512_vnni::SixBitSums;
using avx512_vnni::WideScaleShape;

// Two adjacent columns of each of sixteen rows, or the same two columns of x in every lane.
struct Pairs {
  __m512i v;
};
static inline Pairs LoadPairs(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline constexpr int64_t kUnitsPerPair = 1;
static inline Pairs BroadcastPair(const uint32_t* unit, int64_t /*stride*/) {
  return {_mm512_set1_epi32(static_cast<int>(*unit))};
}
static inline Pairs KeepBits(Pairs pairs, uint32_t mask) {
  return {_mm512_and_si512(pairs.v, _mm512_set1_epi32(static_cast<int>(mask)))};
}
static inline Pairs FirstOnly(Pairs pairs) { return KeepBits(pairs, 0x0000ffffu); }
static inline Pairs SecondOnly(Pairs pairs) { return KeepBits(pairs, 0xffff0000u); }
static inline Vec AddPairs(Vec sum, Pairs w, Pairs x) {
  return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(w.v), reinterpret_cast<__m512bh>(x.v))};
}
// Rounds thirty-two values to bfloat16, ties to even, and stores them as sixteen units.
static inline void StorePairs(const float* x, uint32_t* out) {
  const __m512bh pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
  _mm512_storeu_si512(out, reinterpret_cast<__m512i>(pairs));
}
// Rounds sixteen values to bfloat16 and stores them as eight units, each in the place of one float.
static inline void StoreEightPairs(Vec x, float* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.v)));
}

// Queries and softmax weights of attention, see impl/kv_elements.inl.
struct PairFactors {
  static void StoreQuery(Vec x, int64_t d, int64_t end, float* query, int64_t num_queries) {
    float pairs[Vec::kLanes / 2];
    StoreEightPairs(x, pairs);
    for (int64_t i = d; i < end; i += 2) query[i / 2 * num_queries] = pairs[(i - d) / 2];
  }
  static Pairs QueryPair(const float* query, int64_t d, int64_t num_queries) {
    return PairAt(query + d / 2 * num_queries);
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { StoreEightPairs(x, weights + t / 2); }
  static Pairs WeightPair(const float* weights, int64_t t) { return PairAt(weights + t / 2); }

 private:
  static Pairs PairAt(const float* p) {
    uint32_t unit;
    __builtin_memcpy(&unit, p, sizeof(unit));
    return BroadcastPair(&unit, 1);
  }
};

// Thirty-two registers: 12 rows x 2 panels take 24 accumulators, 2 weights and 1 broadcast.
struct BFloat16Shape {
  static constexpr int kRows = 12, kPanels = 2;
  static constexpr int kFewRows = 12, kPanelsFewRows = 1;
};

}  // namespace vllm::kernels::avx512_bf16
