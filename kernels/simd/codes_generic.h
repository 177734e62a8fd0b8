// Sixteen stored codes -> Vec, in plain C++ for any machine. Every instruction set has these functions, so that each
// format is written once.
#pragma once

#include <cstdint>

#include "kernels/simd/vec_generic.h"

namespace vllm::generic {

using Bytes = uint8_t __attribute__((vector_size(16)));

static inline Bytes LoadBytes(const uint8_t* p) {
  Bytes b;
  __builtin_memcpy(&b, p, sizeof(b));
  return b;
}

static inline Vec UnsignedToFloat(Bytes b) {
  Vec r;
  for (int i = 0; i < Vec::kLanes; ++i) r.v[i] = static_cast<float>(b[i]);
  return r;
}

static inline Vec SignedToFloat(Bytes b) {
  Vec r;
  for (int i = 0; i < Vec::kLanes; ++i) r.v[i] = static_cast<float>(static_cast<int8_t>(b[i]));
  return r;
}

// e4m3fn: four bits of exponent with bias 7, no infinities, NaN where all seven bits are set.
static inline Vec Float8ToFloat(Bytes b) {
  Vec r;
  for (int i = 0; i < Vec::kLanes; ++i) {
    const uint32_t bits = b[i];
    const uint32_t exponent = (bits >> 3) & 0xfu, mantissa = bits & 7u;
    const float subnormal = static_cast<float>(mantissa) * 0x1p-9f;
    const float normal = std::bit_cast<float>(((exponent + 120u) << 23) | (mantissa << 20));
    float value = exponent == 0 ? subnormal : normal;
    if ((bits & 0x7fu) == 0x7fu) value = __builtin_nanf("");
    r.v[i] = (bits & 0x80u) != 0 ? -value : value;
  }
  return r;
}

// table[b[i]] for b[i] below 16.
static inline Bytes LookUp(Bytes table, Bytes b) {
  Bytes r = {};
  for (int i = 0; i < Vec::kLanes; ++i) r[i] = table[b[i]];
  return r;
}

static inline float HalfToFloat(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return Float16ToFloat(bits);
}

// sum + step where x is above threshold.
static inline Vec AddWhereAbove(Vec sum, float step, Vec x, float threshold) {
  for (int i = 0; i < Vec::kLanes; ++i) sum.v[i] += x.v[i] > threshold ? step : 0.0f;
  return sum;
}

static inline void StoreHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToFloat16(value);
  __builtin_memcpy(out, &bits, sizeof(bits));
}

// Rows of x times rows of w whose partial sums fit the registers.
inline constexpr int kDotRows = 2;
inline constexpr int kDotColumns = 1;

}  // namespace vllm::generic
