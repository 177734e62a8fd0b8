// Dot products of int8 for AVX-512 with VNNI. See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/avx512/dots.h"

namespace vllm::kernels::avx512_vnni {

using avx512::Bytes;
using avx512::FourBitShape;
using avx512::kPrefetchOneRow;
using avx512::LargestMagnitude;
using avx512::NarrowScaleShape;
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
using SixBitShape = NarrowScaleShape;

// The float accumulators of large tiles stay in L1 (see FloatAccumulators), so the registers hold the integer ones.
struct WideScaleShape {
  static constexpr int kRows = 12, kPanels = 2;
  static constexpr int kFewRows = 12, kPanelsFewRows = 1;
};

}  // namespace vllm::kernels::avx512_vnni
