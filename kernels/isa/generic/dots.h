// Dot products of int8 in plain C++ for any machine. Every instruction set has these names, so that each kernel is
// written once; the sums are exact, so that all give the same.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/isa/generic/vec.h"

namespace vllm::generic {

// Sixty-four levels: four neighbouring columns of each of sixteen rows. A level stands for level - 128.
struct Codes {
  uint8_t v[64];
  static Codes Load(const uint8_t* p) {
    Codes codes;
    std::memcpy(codes.v, p, sizeof(codes.v));
    return codes;
  }
};

// Four-bit codes, two a byte -> their levels.
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

// A sum for each of sixteen rows.
struct IntSums {
  int32_t v[16];
  struct Four {
    int8_t v[4];
  };

  // `offset` is minus the level of zero times the sum of the x that will be added: for machines whose levels are
  // unsigned.
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
  // As AddDot of Broadcast(*unit), where the machine can in one instruction.
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

// Four-bit codes, two a byte, that are their own levels.
struct FourBitCodes : Codes {
  static void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) {
    for (int i = 0; i < 64; ++i) {
      low.v[i] = p[i] & 15;
      high.v[i] = p[i] >> 4;
    }
  }
};

// As IntSums, of such codes: of 32 columns and no more, so that they fit into sixteen bits.
using FourBitSums = IntSums;

// Codes below 64, each a level. Instead of AddDot their sums may have
//   void AddTwoDotsAt(codes, next_codes, unit, next_unit)
// for machines that add the products of two units in sixteen bits first.
using SixBitCodes = Codes;
using SixBitSums = IntSums;

// Of 128 values; not a number where one of them is not finite.
static inline float LargestMagnitude(const float* x) {
  uint32_t largest = 0;  // ordered as their bits are
  for (int i = 0; i < 128; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest >= 0x7f800000u ? 0x7fc00000u : largest);
}

// Sixty-four products of x and `factor`, in [-127, 127] or not finite, rounded to codes; and the sum of each eight
// codes.
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

}  // namespace vllm::generic
