// Dot products of int8 for AVX2 with AVX-VNNI. See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/avx2/dots.h"

namespace vllm::kernels::avx2_vnni {

using avx2::Bytes;
using avx2::kPrefetchOneRow;
using avx2::LargestMagnitude;
using avx2::StoreCodes;
using avx2::Vec;

struct Codes {
  __m256i v[2];
  static Codes FromLevels(__m256i a, __m256i b) { return {{a, b}}; }
  static Codes Load(const uint8_t* p) {
    return FromLevels(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)));
  }
};

using CodeLevels = avx2::LevelTable<Codes>;

struct IntSums {
  __m256i v[2];

  static IntSums Start(int32_t offset) { return {{_mm256_set1_epi32(offset), _mm256_set1_epi32(offset)}}; }
  static __m256i Broadcast(uint32_t unit) { return _mm256_set1_epi32(static_cast<int>(unit)); }
  void AddDot(const Codes& codes, __m256i x) {
    for (int i = 0; i < 2; ++i) {
#if defined(__AVXVNNI__)
      v[i] = _mm256_dpbusd_avx_epi32(v[i], codes.v[i], x);
#else  // only in tests: the AVX-512 encoding
      v[i] = _mm256_dpbusd_epi32(v[i], codes.v[i], x);
#endif
    }
  }
  void AddDotAt(const Codes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  IntSums Plus(const IntSums& other) const {
    return {{_mm256_add_epi32(v[0], other.v[0]), _mm256_add_epi32(v[1], other.v[1])}};
  }
  Vec ToFloat() const { return {_mm256_cvtepi32_ps(v[0]), _mm256_cvtepi32_ps(v[1])}; }
};

struct FourBitCodes : Codes {
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    avx2::FourBitCodes a, b;
    avx2::FourBitCodes::Load(p, a, b);
    for (int i = 0; i < 2; ++i) {
      low.v[i] = a.v[i];
      high.v[i] = b.v[i];
    }
  }
};
using FourBitSums = IntSums;
struct SixBitCodes : Codes {
  static SixBitCodes From(const Bytes& bytes) { return {{{bytes.v[0], bytes.v[1]}}}; }
};
using SixBitSums = IntSums;

// There are sixteen registers, and an accumulator takes two. 6 rows take 12 registers for sums, 2 for codes and 1 for a
// broadcast. 3 rows with narrow scales take 6 for integer sums and 6 for float sums.
struct WideScaleShape {
  static constexpr int kRows = 6, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct NarrowScaleShape {
  static constexpr int kRows = 3, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using FourBitShape = NarrowScaleShape;
using SixBitShape = NarrowScaleShape;

}  // namespace vllm::kernels::avx2_vnni
