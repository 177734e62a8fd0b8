// Converts sixteen checkpoint codes to a Vec, for NEON. See isa/generic/codes.h for the contracts.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/neon/vec.h"

namespace vllm::kernels::neon {

using Bytes = uint8_t __attribute__((vector_size(16)));

static inline Bytes LoadBytes(const uint8_t* p) { return reinterpret_cast<Bytes>(vld1q_u8(p)); }

static inline Vec UnsignedToFloat(Bytes b) {
  const auto v = reinterpret_cast<uint8x16_t>(b);
  const uint16x8_t low = vmovl_u8(vget_low_u8(v)), high = vmovl_high_u8(v);
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
          vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))};
}

static inline Vec SignedToFloat(Bytes b) { return Vec::FromInt8(reinterpret_cast<int8x16_t>(b)); }

// Shifted left by seven, the magnitude is a half float that is 2^8 times too small. This holds for subnormals too.
static inline uint16x8_t Float8AsHalf(uint16x8_t v) {
  const uint16x8_t magnitude = vandq_u16(v, vdupq_n_u16(0x7f));
  const uint16x8_t sign = vshlq_n_u16(vsubq_u16(v, magnitude), 8);
  const uint16x8_t nan = vandq_u16(vceqq_u16(magnitude, vdupq_n_u16(0x7f)), vdupq_n_u16(0x7e00));
  return vorrq_u16(vorrq_u16(vshlq_n_u16(magnitude, 7), sign), nan);
}
static inline Vec Float8ToFloat(Bytes b) {
  const auto v = reinterpret_cast<uint8x16_t>(b);
  const Vec halves = Vec::FromHalves(Float8AsHalf(vmovl_u8(vget_low_u8(v))), Float8AsHalf(vmovl_high_u8(v)));
  return Vec::Mul(halves, Vec::Set1(256.0f));
}

static inline Bytes LookUp(Bytes table, Bytes b) {
  return reinterpret_cast<Bytes>(vqtbl1q_u8(reinterpret_cast<uint8x16_t>(table), reinterpret_cast<uint8x16_t>(b)));
}

static inline Vec LookUpFloats(const float* values, Bytes b) {
  float lanes[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i) lanes[i] = values[b[i] & 15];
  return Vec::Load(lanes);
}

static inline Bytes FifthBits(const uint8_t* p) {
  const uint8x16_t spread = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
  const uint8x16_t mask = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return reinterpret_cast<Bytes>(vandq_u8(vtstq_u8(spread, mask), vdupq_n_u8(0x10)));
}

static inline float HalfToFloat(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return vgetq_lane_f32(Vec::FromHalves(vdup_n_u16(bits)), 0);
}

static inline Vec StepFunction(Vec x, const float* thresholds, const float* values) {
  Vec result = Vec::Set1(values[0]);
  for (int step = 0; step < 15; ++step) {
    const float32x4_t threshold = vdupq_n_f32(thresholds[step]);
    const float32x4_t rise = vdupq_n_f32(values[step + 1] - values[step]);
    const auto add = [&](float32x4_t sum, float32x4_t v) {
      const uint32x4_t above = vcgtq_f32(v, threshold);
      return vaddq_f32(sum, vreinterpretq_f32_u32(vandq_u32(above, vreinterpretq_u32_f32(rise))));
    };
    result = Vec::Each(add, result, x);
  }
  return result;
}

static inline void StoreHalf(float value, uint8_t* out) {
  const uint16_t bits = vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(value))), 0);
  __builtin_memcpy(out, &bits, sizeof(bits));
}

// Thirty-two registers: 3 x 2 accumulators of four registers each, and the factors.
inline constexpr int kDotRows = 3;
inline constexpr int kDotColumns = 2;
// With at most this many rows of x, the codes of w are multiplied as they are decoded instead of being unpacked first.
inline constexpr int kDirectRows = 2;
// Rows of w per pass in that case if x has more than one row.
inline constexpr int kDirectWeightRowsFewX = 2;

}  // namespace vllm::kernels::neon
