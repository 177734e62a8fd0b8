// Vec for AVX2 with FMA and F16C: two registers of eight floats. See isa/generic/vec.h for the contracts.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vllm::kernels::avx2 {

struct Vec {
  static constexpr int kLanes = 16;
  __m256 lo, hi;

  static Vec Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static __m256i LaneIndex(int base) {
    return _mm256_add_epi32(_mm256_set1_epi32(base), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256i MaskBelow(int n, int base) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), LaneIndex(base)); }
  static Vec LoadPartial(const float* p, int n) {
    return {_mm256_maskload_ps(p, MaskBelow(n, 0)), _mm256_maskload_ps(p + 8, MaskBelow(n, 8))};
  }
  template <int kOffset>
  static __m256 FromPairs(const uint16_t* p) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(kOffset == 0 ? _mm256_slli_epi32(pairs, 16)
                                            : _mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
  }
  template <int kOffset>
  static Vec LoadBFloat16OfPairs(const uint16_t* p) {
    return {FromPairs<kOffset>(p), FromPairs<kOffset>(p + 16)};
  }
  static Vec LoadFloat16(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static Vec LoadInt8(const int8_t* p) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
  }
  void Store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  void StorePartial(float* p, int n) const {
    _mm256_maskstore_ps(p, MaskBelow(n, 0), lo);
    _mm256_maskstore_ps(p + 8, MaskBelow(n, 8), hi);
  }
  static Vec Add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static Vec Sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
  static Vec Mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static Vec Div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
  static Vec Fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
  static Vec Max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  static Vec Min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
  static Vec Round(Vec a) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
  }
  static __m256 Pow2(__m256 n) {
    const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
  }
  static Vec Pow2(Vec n) { return {Pow2(n.lo), Pow2(n.hi)}; }
  static Vec ScalePow2(Vec a, Vec n) {
    const Vec half = Round(Mul(n, Set1(0.5f)));
    return Mul(Mul(a, Pow2(half)), Pow2(Sub(n, half)));
  }
  static Vec SelectRange(int first, int last, Vec a, Vec b) {
    const __m256 m0 = _mm256_castsi256_ps(_mm256_andnot_si256(MaskBelow(first, 0), MaskBelow(last, 0)));
    const __m256 m1 = _mm256_castsi256_ps(_mm256_andnot_si256(MaskBelow(first, 8), MaskBelow(last, 8)));
    return {_mm256_blendv_ps(b.lo, a.lo, m0), _mm256_blendv_ps(b.hi, a.hi, m1)};
  }
  static float ReduceAdd(Vec a) {
    const __m256 s8 = _mm256_add_ps(a.lo, a.hi);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
  }
  static float ReduceMax(Vec a) {
    const __m256 s8 = _mm256_max_ps(a.lo, a.hi);
    const __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_max_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
  }
};

// There are sixteen registers. 6 rows x 1 panel take 12 for accumulators, 2 for weights and 1 for a broadcast.
inline constexpr int kRowTile = 6;
// The mask for bfloat16 pairs takes a register. With six rows, some accumulators would be spilled, which stalls the
// others.
inline constexpr int kRowTileOfPairs = 5;
inline constexpr int kPanelTile = 1;
inline constexpr int kPanelTileOneRow = 4;
// kQueryTile: maximum number of queries per score tile. kScoreRegisters: number of Vecs that the tile's accumulators
// and keys may occupy.
inline constexpr int kQueryTile = 6, kScoreRegisters = 7;
// kValueQueries: maximum number of queries per value tile. kValueChunks: number of Vecs of V per tile; a single query
// uses up to twice as many.
inline constexpr int kValueQueries = 2, kValueChunks = 2;
// Whether kernels prefetch weights even if x has a single row.
inline constexpr bool kPrefetchOneRow = false;

}  // namespace vllm::kernels::avx2
