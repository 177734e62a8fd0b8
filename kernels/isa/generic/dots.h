// Dot products of int8 in plain C++ for any CPU. Every instruction set defines these names, so each kernel is written
// only once. The integer sums are exact, so they are the same on all instruction sets. Plain values; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/isa/generic/vec.h"

namespace vllm::kernels::generic {

// Sixty-four levels: four adjacent columns of each of sixteen rows. A level represents the value level - zero, where
// zero is PackedQuantForm::zero.
struct Codes {
  uint8_t v[64];
  static Codes Load(const uint8_t* p) {
    Codes codes;
    std::memcpy(codes.v, p, sizeof(codes.v));
    return codes;
  }
};

// Reads four-bit codes, two per byte, and looks up their levels.
struct CodeLevels {
  const uint8_t* table;
  explicit CodeLevels(const uint8_t* levels) : table(levels) {}
  void Load(const uint8_t* p, Codes& low, Codes& high) const {
    for (int i = 0; i < 64; ++i) {
      low.v[i] = table[p[i] & 15];
      high.v[i] = table[p[i] >> 4];
    }
  }
};

// One accumulator for each of sixteen rows.
struct IntSums {
  int32_t v[16];
  struct Four {
    int8_t v[4];
  };

  // `offset` is -(zero point of the weight) * (sum of the codes of x that will be added). The sums include `offset` if
  // the levels are unsigned. If Codes subtracts 128 from each level, IntSums ignores `offset`.
  static IntSums Start(int32_t offset) {
    IntSums sums;
    for (int32_t& sum : sums.v) sum = offset;
    return sums;
  }
  static Four Broadcast(uint32_t unit) {
    Four four;
    std::memcpy(four.v, &unit, sizeof(four.v));
    return four;
  }
  void AddDot(const Codes& codes, Four x) {
    for (int n = 0; n < 16; ++n) {
      for (int i = 0; i < 4; ++i) v[n] += codes.v[4 * n + i] * x.v[i];
    }
  }
  // AddDot with Broadcast(*unit), which is a single instruction on some CPUs.
  void AddDotAt(const Codes& codes, const uint32_t* unit) { AddDot(codes, Broadcast(*unit)); }
  IntSums Plus(const IntSums& other) const {
    IntSums sums;
    for (int i = 0; i < 16; ++i) sums.v[i] = v[i] + other.v[i];
    return sums;
  }
  Vec ToFloat() const {
    Vec result;
    for (int i = 0; i < 16; ++i) result.v[i] = static_cast<float>(v[i]);
    return result;
  }
};

// Four-bit codes, two per byte, whose levels are the codes themselves.
struct FourBitCodes : Codes {
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    for (int i = 0; i < 64; ++i) {
      low.v[i] = p[i] & 15;
      high.v[i] = p[i] >> 4;
    }
  }
};

// IntSums for FourBitCodes. A sum covers at most 32 columns, so an instruction set may keep two sixteen-bit sums
// per row instead.
using FourBitSums = IntSums;

// Sixty-four bytes. Shifts may move bits into the lowest (ShiftLeft) or highest (ShiftRight) kBits bits of a byte from
// the byte next to it.
struct Bytes {
  uint8_t v[64];
  static Bytes Load(const uint8_t* p) {
    Bytes bytes;
    std::memcpy(bytes.v, p, sizeof(bytes.v));
    return bytes;
  }
  Bytes And(uint8_t mask) const {
    return Map([mask](uint8_t byte) { return byte & mask; });
  }
  template <int kBits>
  Bytes ShiftLeft() const {
    return Map([](uint8_t byte) { return byte << kBits; });
  }
  template <int kBits>
  Bytes ShiftRight() const {
    return Map([](uint8_t byte) { return byte >> kBits; });
  }
  Bytes Or(const Bytes& other) const {
    Bytes bytes;
    for (int i = 0; i < 64; ++i) bytes.v[i] = v[i] | other.v[i];
    return bytes;
  }

 private:
  template <typename F>
  Bytes Map(F f) const {
    Bytes bytes;
    for (int i = 0; i < 64; ++i) bytes.v[i] = static_cast<uint8_t>(f(v[i]));
    return bytes;
  }
};

// Codes below 64 whose levels are the codes themselves. Instead of AddDot, SixBitSums may provide
//   void AddTwoDotsAt(codes, next_codes, unit, next_unit)
// so that an instruction set can first add the products of two units in sixteen bits.
struct SixBitCodes : Codes {
  static SixBitCodes From(const Bytes& bytes) {
    SixBitCodes codes;
    std::memcpy(codes.v, bytes.v, sizeof(codes.v));
    return codes;
  }
};
using SixBitSums = IntSums;

// Returns the largest magnitude of 128 values, or NaN if one of them is not finite.
static inline float LargestMagnitude(const float* x) {
  uint32_t largest = 0;  // bit patterns of non-negative floats sort like the floats
  for (int i = 0; i < 128; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest >= 0x7f800000u ? 0x7fc00000u : largest);
}

// Rounds sixty-four products of x and `factor` to codes, and sets sums[i] to the sum of codes 8 i to 8 i + 7. The codes
// of products that are not finite are unspecified. REQUIRES: finite products are in [-127, 127].
static inline void StoreCodes(const float* x, Vec factor, int8_t* codes, int32_t* sums) {
  for (int i = 0; i < 64; ++i) {
    const float rounded = std::nearbyintf(x[i] * factor.v[i % Vec::kLanes]);
    codes[i] = rounded >= -127.0f && rounded <= 127.0f ? static_cast<int8_t>(rounded) : int8_t{0};
    if (i % 8 == 0) sums[i / 8] = 0;
    sums[i / 8] += codes[i];
  }
}

struct WideScaleShape {
  static constexpr int kRows = 2, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
struct NarrowScaleShape {
  static constexpr int kRows = 2, kPanels = 1;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using FourBitShape = NarrowScaleShape;
using SixBitShape = NarrowScaleShape;

}  // namespace vllm::kernels::generic
