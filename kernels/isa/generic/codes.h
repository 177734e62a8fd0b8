// Sixteen stored codes -> Vec, in plain C++ for any machine. Every instruction set has these functions, so that each
// format is written once.
#pragma once

#include <cstdint>

#include "kernels/isa/generic/vec.h"

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
    // The same bits twenty places higher are a float 2^120 times smaller, subnormals too.
    const float value = std::bit_cast<float>((bits & 0x7fu) << 20) * 0x1p120f;
    const uint32_t nan = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : 0u;
    r.v[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(value) | nan | (bits & 0x80u) << 24);
  }
  return r;
}

// table[b[i]] for b[i] below 16.
static inline Bytes LookUp(Bytes table, Bytes b) {
  uint8_t from[Vec::kLanes], to[Vec::kLanes];
  __builtin_memcpy(from, &table, sizeof(from));
  for (int i = 0; i < Vec::kLanes; ++i) to[i] = from[b[i] & 15];
  return LoadBytes(to);
}

// Lane i is 0x10 where bit i of the two bytes at p is set.
static inline Bytes FifthBits(const uint8_t* p) {
  using Words = uint64_t __attribute__((vector_size(16)));
  constexpr uint64_t kEach = 0x0101010101010101u;
  const Words spread = {p[0] * kEach, p[1] * kEach};
  const Bytes mask = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return reinterpret_cast<Bytes>((reinterpret_cast<Bytes>(spread) & mask) != 0) & 0x10;
}

static inline float HalfToFloat(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return Float16ToFloat(bits);
}

// values[number of the 15 ascending thresholds that are below x]; 0 of them are below what is no number. Values are
// small whole numbers.
static inline Vec StepFunction(Vec x, const float* thresholds, const float* values) {
  Vec result = Vec::Set1(values[0]);
  for (int step = 0; step < 15; ++step) {
    const float rise = values[step + 1] - values[step];
    for (int i = 0; i < Vec::kLanes; ++i) result.v[i] += x.v[i] > thresholds[step] ? rise : 0.0f;
  }
  return result;
}

static inline void StoreHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToFloat16(value);
  __builtin_memcpy(out, &bits, sizeof(bits));
}

// Rows of x times rows of w whose partial sums fit the registers.
inline constexpr int kDotRows = 2;
inline constexpr int kDotColumns = 1;
// Rows of x that are multiplied without unpacking, and of w at once where x has several.
inline constexpr int kDirectRows = 1;
inline constexpr int kRowsAtOnceOfSeveral = 1;

}  // namespace vllm::generic
