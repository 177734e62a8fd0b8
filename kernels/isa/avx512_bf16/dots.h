// Dot products of int8 and bfloat16 for AVX-512 with VNNI and BF16. See isa/generic/dots.h for the contracts of
// the int8 types.
#pragma once

#include "kernels/isa/avx512/dots.h"

namespace vllm::kernels::avx512_bf16 {

using avx512::Bytes;
using avx512::FourBitShape;
using avx512::kQueryTile;
using avx512::kScoreRegisters;
using avx512::kValueChunks;
using avx512::kValueQueries;
using avx512::LargestMagnitude;
using avx512::NarrowScaleShape;
using avx512::SixBitShape;
using avx512::StoreCodes;
using avx512::Vec;

struct Codes {
  __m512i v;
  static Codes FromLevels(__m512i levels) { return {levels}; }
  static Codes Load(const uint8_t* p) { return FromLevels(_mm512_loadu_si512(p)); }
};

using CodeLevels = avx512::LevelTable<Codes>;

struct IntSums {
  __m512i v;

  static IntSums Start(int32_t offset) { return {_mm512_set1_epi32(offset)}; }
  static __m512i Broadcast(uint32_t unit) { return _mm512_set1_epi32(static_cast<int>(unit)); }
  // Inline assembly: with the intrinsic, g++ 12 copies the accumulator before and after each instruction and runs out
  // of registers.
  void AddDot(const Codes& codes, __m512i x) {
    __m512i sum = v;
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes.v), "v"(x));
    v = sum;
  }
  void AddDotAt(const Codes& codes, const uint32_t* unit) {
    __m512i sum = v;
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes.v), "m"(*unit));
    v = sum;
  }
  IntSums Plus(const IntSums& other) const { return {_mm512_add_epi32(v, other.v)}; }
  Vec ToFloat() const { return {_mm512_cvtepi32_ps(v)}; }
};

struct FourBitCodes : Codes {
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    avx512::FourBitCodes a, b;
    avx512::FourBitCodes::Load(p, a, b);
    low.v = a.v;
    high.v = b.v;
  }
};
using FourBitSums = IntSums;
struct SixBitCodes : Codes {
  static SixBitCodes From(const Bytes& bytes) { return {{bytes.v}}; }
};
using SixBitSums = IntSums;

// Two adjacent columns of each of sixteen rows, or the same two columns of x in every lane.
struct Pairs {
  __m512i v;
};
static inline Pairs LoadPairs(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
static inline Pairs BroadcastPair(uint32_t unit) { return {_mm512_set1_epi32(static_cast<int>(unit))}; }
static inline Pairs BroadcastPairAt(const float* p) {
  uint32_t unit;
  __builtin_memcpy(&unit, p, sizeof(unit));
  return BroadcastPair(unit);
}
static inline Pairs KeepBits(Pairs pairs, uint32_t mask) {
  return {_mm512_and_si512(pairs.v, _mm512_set1_epi32(static_cast<int>(mask)))};
}
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

// Thirty-two registers: 12 rows x 2 panels take 24 accumulators, 2 weights and 1 broadcast.
struct BFloat16Shape {
  static constexpr int kRows = 12, kPanels = 2;
  static constexpr int kFewRows = 4, kPanelsFewRows = 4;
};
// The float accumulators of large tiles stay in L1 (see FloatAccumulators), so the registers hold the integer ones.
struct WideScaleShape {
  static constexpr int kRows = 12, kPanels = 2;
  static constexpr int kFewRows = 4, kPanelsFewRows = 4;
};

}  // namespace vllm::kernels::avx512_bf16
