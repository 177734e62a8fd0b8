// Converts sixteen checkpoint codes to a Vec, in plain C++ for any CPU. isa/avx2, isa/avx512 and isa/neon define the
// same functions, so the kernel of each format is written only once. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "kernels/isa/generic/vec.h"

namespace vllm::kernels::generic {

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

// e4m3fn has four exponent bits with bias 7 and no infinities. NaN has all seven magnitude bits set.
static inline Vec Float8ToFloat(Bytes b) {
  Vec r;
  for (int i = 0; i < Vec::kLanes; ++i) {
    const uint32_t bits = b[i];
    // Shifted left by twenty, the bits are a float that is 2^120 times too small. This holds for subnormals too.
    const float value = std::bit_cast<float>((bits & 0x7fu) << 20) * 0x1p120f;
    const uint32_t nan = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : 0u;
    r.v[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(value) | nan | (bits & 0x80u) << 24);
  }
  return r;
}

// Returns table[b[i]] in lane i. REQUIRES: b[i] < 16.
static inline Bytes LookUp(Bytes table, Bytes b) {
  uint8_t from[Vec::kLanes], to[Vec::kLanes];
  __builtin_memcpy(from, &table, sizeof(from));
  for (int i = 0; i < Vec::kLanes; ++i) to[i] = from[b[i] & 15];
  return LoadBytes(to);
}

// Returns values[b[i]] in lane i. values: [16], any alignment. REQUIRES: b[i] < 16.
static inline Vec LookUpFloats(const float* values, Bytes b) {
  Vec r;
  for (int i = 0; i < Vec::kLanes; ++i) r.v[i] = values[b[i] & 15];
  return r;
}

// Lane i is 0x10 if bit i of the two bytes at p is set, else 0.
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

// Returns values[number of thresholds below x] for each lane. NaN counts as below all thresholds. thresholds: [15],
// ascending; values: [16], small integers.
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

// Tile sizes, chosen so that the accumulators fit in the registers. kDotRows: rows of x. kDotColumns: rows of w.
inline constexpr int kDotRows = 2;
inline constexpr int kDotColumns = 1;
// With at most this many rows of x, the codes of w are multiplied as they are decoded instead of being unpacked first.
inline constexpr int kDirectRows = 1;
// Rows of w per pass in that case if x has more than one row.
inline constexpr int kDirectWeightRowsFewX = 1;

}  // namespace vllm::kernels::generic
