// Dot products of bfloat16 for NEON with bfdot. Those of int8 are in isa/neon_i8mm/dots.h.
#pragma once

#include "kernels/isa/neon/vec.h"

namespace vllm::kernels::neon_bf16 {

using neon::Vec;

// Two adjacent columns of each of sixteen rows, or the same two columns of x in every lane.
struct Pairs {
  bfloat16x8_t a, b, c, d;
};
static inline bfloat16x8_t LoadFourPairs(const uint8_t* p) { return vreinterpretq_bf16_u8(vld1q_u8(p)); }
static inline Pairs LoadPairs(const uint8_t* p) {
  return {LoadFourPairs(p), LoadFourPairs(p + 16), LoadFourPairs(p + 32), LoadFourPairs(p + 48)};
}
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

// Thirty-two registers: 6 rows x 1 panel take 24 accumulators, 4 weights and 1 broadcast.
struct BFloat16Shape {
  static constexpr int kRows = 6, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};

}  // namespace vllm::kernels::neon_bf16
