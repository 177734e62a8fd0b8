// Vec for AArch64's NEON: four registers of four floats. See isa/generic/vec.h for the contracts.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace vllm::kernels::neon {

struct Vec {
  static constexpr int kLanes = 16;
  float32x4_t a, b, c, d;

  // Applies f to each register of x and the same register of the others.
  template <typename F, typename... Others>
  static Vec Each(F f, Vec x, Others... others) {
    return {f(x.a, others.a...), f(x.b, others.b...), f(x.c, others.c...), f(x.d, others.d...)};
  }

  static Vec Set1(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return {v, v, v, v};
  }
  static Vec Zero() { return Set1(0.0f); }
  static Vec Load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
  static Vec LoadPartial(const float* p, int n) {
    float lanes[kLanes] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return Load(lanes);
  }
  static float32x4_t FromBits(uint32x4_t bits) { return vreinterpretq_f32_u32(bits); }
  template <int kOffset>
  static float32x4_t FromPairs(const uint16_t* p) {
    const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(p));
    return FromBits(kOffset == 0 ? vshlq_n_u32(pairs, 16) : vandq_u32(pairs, vdupq_n_u32(0xffff0000u)));
  }
  template <int kOffset>
  static Vec LoadBFloat16OfPairs(const uint16_t* p) {
    return {FromPairs<kOffset>(p), FromPairs<kOffset>(p + 8), FromPairs<kOffset>(p + 16), FromPairs<kOffset>(p + 24)};
  }
  static float32x4_t FromHalves(uint16x4_t bits) { return vcvt_f32_f16(vreinterpret_f16_u16(bits)); }
  static Vec FromHalves(uint16x8_t low, uint16x8_t high) {
    return {FromHalves(vget_low_u16(low)), FromHalves(vget_high_u16(low)), FromHalves(vget_low_u16(high)),
            FromHalves(vget_high_u16(high))};
  }
  static Vec LoadFloat16(const uint16_t* p) { return FromHalves(vld1q_u16(p), vld1q_u16(p + 8)); }
  static Vec FromInt8(int8x16_t codes) {
    const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
  }
  static Vec LoadInt8(const int8_t* p) { return FromInt8(vld1q_s8(p)); }
  void Store(float* p) const {
    vst1q_f32(p, a);
    vst1q_f32(p + 4, b);
    vst1q_f32(p + 8, c);
    vst1q_f32(p + 12, d);
  }
  void StorePartial(float* p, int n) const {
    float lanes[kLanes];
    Store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }

  static Vec Add(Vec x, Vec y) { return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
  static Vec Sub(Vec x, Vec y) { return {x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }
  static Vec Mul(Vec x, Vec y) { return {x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }
  static Vec Div(Vec x, Vec y) { return {x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d}; }
  static Vec Fma(Vec x, Vec y, Vec z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
  }
  // Return y if x or y is NaN. The native maximum and minimum would return NaN.
  static float32x4_t Larger(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
  static float32x4_t Smaller(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
  static Vec Max(Vec x, Vec y) { return Each(Larger, x, y); }
  static Vec Min(Vec x, Vec y) { return Each(Smaller, x, y); }
  static Vec Round(Vec x) { return {vrndnq_f32(x.a), vrndnq_f32(x.b), vrndnq_f32(x.c), vrndnq_f32(x.d)}; }
  static float32x4_t Pow2Of(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static Vec Pow2(Vec n) { return Each(Pow2Of, n); }
  static Vec ScalePow2(Vec x, Vec n) {
    const Vec half = Round(Mul(n, Set1(0.5f)));
    return Mul(Mul(x, Pow2(half)), Pow2(Sub(n, half)));
  }
  static Vec SelectRange(int first, int last, Vec x, Vec y) {
    const int32x4_t lanes = {0, 1, 2, 3};
    const auto select = [&](int base, float32x4_t in, float32x4_t out) {
      const int32x4_t lane = vaddq_s32(lanes, vdupq_n_s32(base));
      const uint32x4_t inside = vandq_u32(vcgeq_s32(lane, vdupq_n_s32(first)), vcltq_s32(lane, vdupq_n_s32(last)));
      return vbslq_f32(inside, in, out);
    };
    return {select(0, x.a, y.a), select(4, x.b, y.b), select(8, x.c, y.c), select(12, x.d, y.d)};
  }
  static float ReduceAdd(Vec x) {
    const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static float ReduceMax(Vec x) {
    float lanes[4];
    vst1q_f32(lanes, Larger(Larger(x.a, x.c), Larger(x.b, x.d)));
    const float even = lanes[0] > lanes[2] ? lanes[0] : lanes[2];
    const float odd = lanes[1] > lanes[3] ? lanes[1] : lanes[3];
    return even > odd ? even : odd;
  }
};

// Thirty-two registers: 6 rows x 1 panel take 24 accumulators, 4 weights, 1 broadcast and 1 mask.
inline constexpr int kRowTile = 6, kRowTileOfPairs = 6;
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

}  // namespace vllm::kernels::neon
