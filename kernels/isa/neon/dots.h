// Dot products of int8 for NEON without sdot. See isa/generic/dots.h for the contracts.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/neon/vec.h"

namespace vllm::kernels::neon {

// Adds to each lane of `sum` the products of its four codes and the four values of x.
struct PairwiseDot {
  static int32x4_t Add(int32x4_t sum, int8x16_t codes, int8x16_t x) {
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(x)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(codes, x));
    return vaddq_s32(sum, vpaddq_s32(low, high));
  }
};

struct Codes {
  int8x16_t a, b, c, d;
  static int8x16_t FromLevels(uint8x16_t levels) { return vreinterpretq_s8_u8(veorq_u8(levels, vdupq_n_u8(128))); }
  static Codes Load(const uint8_t* p) {
    return {FromLevels(vld1q_u8(p)), FromLevels(vld1q_u8(p + 16)), FromLevels(vld1q_u8(p + 32)),
            FromLevels(vld1q_u8(p + 48))};
  }
};

struct CodeLevels {
  int8x16_t table;
  explicit CodeLevels(const uint8_t* levels) : table(Codes::FromLevels(vld1q_u8(levels))) {}
  int8x16_t Low(uint8x16_t bytes) const { return vqtbl1q_s8(table, vandq_u8(bytes, vdupq_n_u8(15))); }
  int8x16_t High(uint8x16_t bytes) const { return vqtbl1q_s8(table, vshrq_n_u8(bytes, 4)); }
  void Load(const uint8_t* p, Codes& low, Codes& high) const {
    const uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), c = vld1q_u8(p + 32), d = vld1q_u8(p + 48);
    low = {Low(a), Low(b), Low(c), Low(d)};
    high = {High(a), High(b), High(c), High(d)};
  }
};

struct FourBitCodes : Codes {
  static int8x16_t Low(uint8x16_t bytes) { return vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15))); }
  static int8x16_t High(uint8x16_t bytes) { return vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4)); }
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    const uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), c = vld1q_u8(p + 32), d = vld1q_u8(p + 48);
    low = {{Low(a), Low(b), Low(c), Low(d)}};
    high = {{High(a), High(b), High(c), High(d)}};
  }
};

template <typename Dot>
struct IntSumsWith {
  int32x4_t a, b, c, d;

  static IntSumsWith Start(int32_t /*offset*/) {
    const int32x4_t zero = vdupq_n_s32(0);
    return {zero, zero, zero, zero};
  }
  static int8x16_t Broadcast(uint32_t unit) { return vreinterpretq_s8_u32(vdupq_n_u32(unit)); }
  void AddDot(const Codes& codes, int8x16_t x) {
    a = Dot::Add(a, codes.a, x);
    b = Dot::Add(b, codes.b, x);
    c = Dot::Add(c, codes.c, x);
    d = Dot::Add(d, codes.d, x);
  }
  void AddDotAt(const Codes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  IntSumsWith Plus(const IntSumsWith& other) const {
    return {vaddq_s32(a, other.a), vaddq_s32(b, other.b), vaddq_s32(c, other.c), vaddq_s32(d, other.d)};
  }
  Vec ToFloat() const { return {vcvtq_f32_s32(a), vcvtq_f32_s32(b), vcvtq_f32_s32(c), vcvtq_f32_s32(d)}; }
};

struct Bytes {
  uint8x16_t v[4];
  static Bytes Load(const uint8_t* p) { return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}}; }
  Bytes And(uint8_t mask) const {
    const uint8x16_t all = vdupq_n_u8(mask);
    return {{vandq_u8(v[0], all), vandq_u8(v[1], all), vandq_u8(v[2], all), vandq_u8(v[3], all)}};
  }
  Bytes Or(const Bytes& other) const {
    return {{vorrq_u8(v[0], other.v[0]), vorrq_u8(v[1], other.v[1]), vorrq_u8(v[2], other.v[2]),
             vorrq_u8(v[3], other.v[3])}};
  }
  template <int kBits>
  Bytes ShiftLeft() const {
    return {{vshlq_n_u8(v[0], kBits), vshlq_n_u8(v[1], kBits), vshlq_n_u8(v[2], kBits), vshlq_n_u8(v[3], kBits)}};
  }
  template <int kBits>
  Bytes ShiftRight() const {
    return {{vshrq_n_u8(v[0], kBits), vshrq_n_u8(v[1], kBits), vshrq_n_u8(v[2], kBits), vshrq_n_u8(v[3], kBits)}};
  }
};

struct SixBitCodes : Codes {
  static SixBitCodes From(const Bytes& bytes) {
    return {{vreinterpretq_s8_u8(bytes.v[0]), vreinterpretq_s8_u8(bytes.v[1]), vreinterpretq_s8_u8(bytes.v[2]),
             vreinterpretq_s8_u8(bytes.v[3])}};
  }
};

// Accumulators for four-bit and six-bit codes.
template <typename Dot>
struct SmallSumsWith : IntSumsWith<Dot> {
  static SmallSumsWith Start(int32_t offset) {
    const int32x4_t start = vdupq_n_s32(offset);
    return {{start, start, start, start}};
  }
  void AddTwoDotsAt(const Codes& first, const Codes& second, const uint32_t* first_unit, const uint32_t* second_unit) {
    this->AddDotAt(first, first_unit);
    this->AddDotAt(second, second_unit);
  }
  SmallSumsWith Plus(const SmallSumsWith& other) const { return {IntSumsWith<Dot>::Plus(other)}; }
};

using IntSums = IntSumsWith<PairwiseDot>;
using FourBitSums = SmallSumsWith<PairwiseDot>;
using SixBitSums = FourBitSums;

static inline float LargestMagnitude(const float* x) {
  uint32x4_t largest[2] = {vdupq_n_u32(0), vdupq_n_u32(0)};
  for (int i = 0; i < 32; ++i) {
    const uint32x4_t magnitude = vbicq_u32(vreinterpretq_u32_f32(vld1q_f32(x + 4 * i)), vdupq_n_u32(0x80000000u));
    largest[i % 2] = vmaxq_u32(largest[i % 2], magnitude);
  }
  const uint32_t bits = vmaxvq_u32(vmaxq_u32(largest[0], largest[1]));
  return vgetq_lane_f32(vreinterpretq_f32_u32(vdupq_n_u32(bits >= 0x7f800000u ? 0x7fc00000u : bits)), 0);
}

static inline void StoreCodes(const float* x, Vec factor, int8_t* codes, int32_t* sums) {
  for (int half = 0; half < 2; ++half) {
    int32x4_t fours[2];
    for (int part = 0; part < 2; ++part) {
      const float* from = x + 32 * half + 16 * part;
      int32x4_t v[4];
      for (int i = 0; i < 4; ++i) v[i] = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(from + 4 * i), factor.a));
      const int16x8_t low = vcombine_s16(vqmovn_s32(v[0]), vqmovn_s32(v[1]));
      const int16x8_t high = vcombine_s16(vqmovn_s32(v[2]), vqmovn_s32(v[3]));
      const int8x16_t bytes = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
      vst1q_s8(codes + 32 * half + 16 * part, bytes);
      fours[part] = vpaddlq_s16(vpaddlq_s8(bytes));
    }
    vst1q_s32(sums + 4 * half, vpaddq_s32(fours[0], fours[1]));
  }
}

// Thirty-two registers; an accumulator takes four. With narrow scales each row also needs four for its float sums.
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

}  // namespace vllm::kernels::neon
