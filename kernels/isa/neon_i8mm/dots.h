// Dot products of int8 for NEON with sdot and smmla (I8MM). See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/neon/dots.h"

namespace vllm::kernels::neon_i8mm {

using neon::Bytes;
using neon::CodeLevels;
using neon::Codes;
using neon::FourBitCodes;
using neon::kPrefetchOneRow;
using neon::LargestMagnitude;
using neon::SixBitCodes;
using neon::StoreCodes;
using neon::Vec;

struct SdotDot {
  static int32x4_t Add(int32x4_t sum, int8x16_t codes, int8x16_t x) { return vdotq_s32(sum, codes, x); }
};

// Accumulators of two rows of x. smmla multiplies eight columns of two rows by eight columns of two outputs.
template <bool kStartAtOffset>
struct TwoRowSums {
  int32x4_t v[8];  // v[i]: outputs 2 * i and 2 * i + 1 of the first row, then of the second

  static TwoRowSums Start(int32_t first, int32_t second) {
    const int32x4_t start = kStartAtOffset ? vcombine_s32(vdup_n_s32(first), vdup_n_s32(second)) : vdupq_n_s32(0);
    return {{start, start, start, start, start, start, start, start}};
  }
  // Eight columns of two outputs each.
  struct Interleaved {
    int8x16_t v[8];
  };
  static int8x16_t Zip(bool high, int8x16_t first, int8x16_t second) {
    const int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    return vreinterpretq_s8_s32(high ? vzip2q_s32(a, b) : vzip1q_s32(a, b));
  }
  static Interleaved Interleave(const Codes& first, const Codes& second) {
    return {{Zip(false, first.a, second.a), Zip(true, first.a, second.a), Zip(false, first.b, second.b),
             Zip(true, first.b, second.b), Zip(false, first.c, second.c), Zip(true, first.c, second.c),
             Zip(false, first.d, second.d), Zip(true, first.d, second.d)}};
  }
  // Eight columns of two rows, of which the second is zero unless kBoth.
  template <bool kBoth>
  static int8x16_t LoadUnits(const uint32_t* first, const uint32_t* second) {
    if constexpr (kBoth) {
      const uint32x2_t a = vld1_u32(first), b = vld1_u32(second);
      return vreinterpretq_s8_u32(vcombine_u32(vzip1_u32(a, b), vzip2_u32(a, b)));
    } else {
      return vreinterpretq_s8_u32(vcombine_u32(vset_lane_u32(*second, vdup_n_u32(*first), 1), vdup_n_u32(0)));
    }
  }
  void Add(const Interleaved& codes, int8x16_t x) {
    for (int i = 0; i < 8; ++i) v[i] = vmmlaq_s32(v[i], x, codes.v[i]);
  }
  // Four outputs of one row.
  static float32x4_t Four(int32x4_t low, int32x4_t high, int row) {
    const int64x2_t a = vreinterpretq_s64_s32(low), b = vreinterpretq_s64_s32(high);
    return vcvtq_f32_s32(vreinterpretq_s32_s64(row == 0 ? vzip1q_s64(a, b) : vzip2q_s64(a, b)));
  }
  Vec ToFloat(int row) const {
    return {Four(v[0], v[1], row), Four(v[2], v[3], row), Four(v[4], v[5], row), Four(v[6], v[7], row)};
  }
};

struct IntSums : neon::IntSumsWith<SdotDot> {
  using TwoRows = TwoRowSums<false>;
  static IntSums Start(int32_t offset) { return {neon::IntSumsWith<SdotDot>::Start(offset)}; }
  IntSums Plus(const IntSums& other) const { return {neon::IntSumsWith<SdotDot>::Plus(other)}; }
};
struct FourBitSums : neon::SmallSumsWith<SdotDot> {
  using TwoRows = TwoRowSums<true>;
  static FourBitSums Start(int32_t offset) { return {neon::SmallSumsWith<SdotDot>::Start(offset)}; }
  FourBitSums Plus(const FourBitSums& other) const { return {neon::SmallSumsWith<SdotDot>::Plus(other)}; }
};
using SixBitSums = FourBitSums;

// Thirty-two registers. Two rows take eight accumulators.
struct WideScaleShape {
  static constexpr int kRows = 6, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct NarrowScaleShape {
  static constexpr int kRows = 4, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using FourBitShape = NarrowScaleShape;
using SixBitShape = NarrowScaleShape;

}  // namespace vllm::kernels::neon_i8mm
