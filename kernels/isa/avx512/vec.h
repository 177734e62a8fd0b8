// Vec for AVX-512 (F, BW, DQ, VL): one register of sixteen floats. See isa/generic/vec.h for the contracts.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vllm::kernels::avx512 {

struct Vec {
  static constexpr int kLanes = 16;
  __m512 v;

  static Vec Set1(float x) { return {_mm512_set1_ps(x)}; }
  static Vec Zero() { return {_mm512_setzero_ps()}; }
  static __mmask16 MaskBelow(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec LoadPartial(const float* p, int n) { return {_mm512_maskz_loadu_ps(MaskBelow(n), p)}; }
  template <int kOffset>
  static Vec LoadBFloat16OfPairs(const uint16_t* p) {
    const __m512i pairs = _mm512_loadu_si512(p);
    const __m512i bits =
        kOffset == 0 ? _mm512_slli_epi32(pairs, 16) : _mm512_and_si512(pairs, _mm512_set1_epi32(-65536));
    return {_mm512_castsi512_ps(bits)};
  }
  static Vec LoadFloat16(const uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Vec LoadInt8(const int8_t* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  void StorePartial(float* p, int n) const { _mm512_mask_storeu_ps(p, MaskBelow(n), v); }
  static Vec Add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  static Vec Sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static Vec Mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static Vec Div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec Max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Vec Min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Vec Round(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
  static Vec Pow2(Vec n) {
    const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(e, 23))};
  }
  static Vec ScalePow2(Vec a, Vec n) { return {_mm512_scalef_ps(a.v, n.v)}; }
  static Vec SelectRange(int first, int last, Vec a, Vec b) {
    const unsigned mask = ((1u << last) - 1u) & ~((1u << first) - 1u);
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), b.v, a.v)};
  }
  static float ReduceAdd(Vec a) {
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
  }
  static float ReduceMax(Vec a) {
    const __m256 s8 = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_max_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
  }
};

// Thirty-two registers: 6 rows x 4 panels take 24 accumulators, 4 weights and 1 broadcast. A single row needs eight
// independent accumulators to hide FMA latency.
inline constexpr int kRowTile = 6, kRowTileOfPairs = 6;
inline constexpr int kPanelTile = 4;
inline constexpr int kPanelTileOneRow = 8;
// kQueryTile: maximum number of queries per score tile. kScoreRegisters: number of Vecs that the tile's accumulators
// and keys may occupy.
inline constexpr int kQueryTile = 12, kScoreRegisters = 28;
// kValueQueries: maximum number of queries per value tile. kValueChunks: number of Vecs of V per tile; a single query
// uses up to twice as many.
inline constexpr int kValueQueries = 6, kValueChunks = 4;
// Whether kernels prefetch weights even if x has a single row.
inline constexpr bool kPrefetchOneRow = false;

}  // namespace vllm::kernels::avx512
