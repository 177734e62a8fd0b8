// Dot products of bfloat16 for NEON with bfdot and bfmmla. Those of int8 are in isa/neon_i8mm/dots.h.
#pragma once

#include "kernels/isa/neon/vec.h"

namespace vllm::kernels::neon_bf16 {

using neon::kPrefetchOneRow;
using neon::Vec;

// Two adjacent columns of each of sixteen rows, or the same two columns of x in every lane.
struct Pairs {
  bfloat16x8_t a, b, c, d;
};
static inline bfloat16x8_t LoadFourPairs(const uint8_t* p) { return vreinterpretq_bf16_u8(vld1q_u8(p)); }
static inline Pairs LoadPairs(const uint8_t* p) {
  return {LoadFourPairs(p), LoadFourPairs(p + 16), LoadFourPairs(p + 32), LoadFourPairs(p + 48)};
}
static inline Pairs ZeroPairs() {
  const bfloat16x8_t zero = vreinterpretq_bf16_u32(vdupq_n_u32(0));
  return {zero, zero, zero, zero};
}
inline constexpr int64_t kUnitsPerPair = 1;
static inline bfloat16x8_t BroadcastPair(uint32_t unit) { return vreinterpretq_bf16_u32(vdupq_n_u32(unit)); }
static inline Vec AddPairs(const Vec& sum, const Pairs& w, bfloat16x8_t x) {
  return {vbfdotq_f32(sum.a, w.a, x), vbfdotq_f32(sum.b, w.b, x), vbfdotq_f32(sum.c, w.c, x),
          vbfdotq_f32(sum.d, w.d, x)};
}
// Rounds thirty-two values to bfloat16, ties to even, and stores them as sixteen units.
static inline void StorePairs(const float* x, uint32_t* out) {
  for (int i = 0; i < 4; ++i) {
    const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(x + 8 * i));
    vst1q_u32(out + 4 * i, vreinterpretq_u32_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(x + 8 * i + 4))));
  }
}

// The sums of one row of x. Add adds the products of four columns, of which units and next hold two each.
struct OneRow {
  Vec sum = Vec::Zero();

  void Add(const Pairs& first, const Pairs& second, const uint32_t* units, const uint32_t* next) {
    sum = AddPairs(AddPairs(sum, first, BroadcastPair(*units)), second, BroadcastPair(*next));
  }
  Vec Get(int /*row*/) const { return sum; }
};

// The sums of several rows, by pairs of rows. If there is an odd row, it is multiplied together with zeros.
template <int kRows>
struct RowPairs {
  static constexpr int kPairs = (kRows + 1) / 2;
  float32x4_t sums[kPairs][8];  // [i][j]: outputs 2 * j and 2 * j + 1 of row 2 * i, then of the next row

  RowPairs() {
    for (auto& pair : sums) {
      for (float32x4_t& sum : pair) sum = vdupq_n_f32(0.0f);
    }
  }
  void Add(const Pairs& first, const Pairs& second, const uint32_t* units, const uint32_t* next) {
    bfloat16x8_t x[kPairs];
    for (int i = 0; i < kPairs; ++i) x[i] = FourColumns(2 * i + 1 < kRows, units + 2 * i, next + 2 * i);
    AddOutputs<0>(first.a, second.a, x);
    AddOutputs<2>(first.b, second.b, x);
    AddOutputs<4>(first.c, second.c, x);
    AddOutputs<6>(first.d, second.d, x);
  }
  Vec Get(int row) const {
    const float32x4_t* const s = sums[row / 2];
    return {Four(s[0], s[1], row), Four(s[2], s[3], row), Four(s[4], s[5], row), Four(s[6], s[7], row)};
  }

 private:
  // Four columns of two rows, of which the second is zero unless `both`.
  static bfloat16x8_t FourColumns(bool both, const uint32_t* units, const uint32_t* next) {
    if (!both) {
      return vreinterpretq_bf16_u32(vcombine_u32(vset_lane_u32(*next, vdup_n_u32(*units), 1), vdup_n_u32(0)));
    }
    const uint32x2_t a = vld1_u32(units), b = vld1_u32(next);
    return vreinterpretq_bf16_u32(vcombine_u32(vzip1_u32(a, b), vzip2_u32(a, b)));
  }
  // Adds the products of four outputs.
  template <int kFirst>
  void AddOutputs(bfloat16x8_t first, bfloat16x8_t second, const bfloat16x8_t (&x)[kPairs]) {
    const uint32x4_t a = vreinterpretq_u32_bf16(first), b = vreinterpretq_u32_bf16(second);
    const bfloat16x8_t low = vreinterpretq_bf16_u32(vzip1q_u32(a, b));
    const bfloat16x8_t high = vreinterpretq_bf16_u32(vzip2q_u32(a, b));
    for (int i = 0; i < kPairs; ++i) {
      sums[i][kFirst] = vbfmmlaq_f32(sums[i][kFirst], x[i], low);
      sums[i][kFirst + 1] = vbfmmlaq_f32(sums[i][kFirst + 1], x[i], high);
    }
  }
  static float32x4_t Four(float32x4_t low, float32x4_t high, int row) {
    const float64x2_t a = vreinterpretq_f64_f32(low), b = vreinterpretq_f64_f32(high);
    return vreinterpretq_f32_f64(row % 2 == 0 ? vzip1q_f64(a, b) : vzip2q_f64(a, b));
  }
};

// Thirty-two registers: 4 rows take 16 accumulators, 8 weights and 2 pairs of rows of x. With 6 rows, g++ spills.
struct BFloat16Shape {
  static constexpr int kRows = 4, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};

}  // namespace vllm::kernels::neon_bf16
