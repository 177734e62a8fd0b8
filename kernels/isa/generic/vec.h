// Vec: sixteen floats, in plain C++ for any CPU. Every instruction set defines a Vec with these members, so each kernel
// is written only once. Lanes are independent, except in the Reduce functions, whose reduction order is the same for
// all instruction sets. A plain value; any thread.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/matrix/dtype.h"

namespace vllm::kernels::generic {

struct Vec {
  static constexpr int kLanes = 16;
  float v[kLanes];

  static Vec Set1(float x) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = x;
    return r;
  }
  static Vec Zero() { return Set1(0.0f); }
  static Vec Load(const float* p) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = p[i];
    return r;
  }
  // Lanes n and above are zero; their memory is not read.
  static Vec LoadPartial(const float* p, int n) {
    Vec r = Zero();
    for (int i = 0; i < n; ++i) r.v[i] = p[i];
    return r;
  }
  // Loads element kOffset, 0 or 1, of each of sixteen pairs.
  template <int kOffset>
  static Vec LoadBFloat16OfPairs(const uint16_t* p) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = BFloat16ToFloat(p[2 * i + kOffset]);
    return r;
  }
  static Vec LoadFloat16(const uint16_t* p) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = Float16ToFloat(p[i]);
    return r;
  }
  static Vec LoadInt8(const int8_t* p) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = static_cast<float>(p[i]);
    return r;
  }
  void Store(float* p) const {
    for (int i = 0; i < kLanes; ++i) p[i] = v[i];
  }
  void StorePartial(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }
  static Vec Add(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] += b.v[i];
    return a;
  }
  static Vec Sub(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] -= b.v[i];
    return a;
  }
  static Vec Mul(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] *= b.v[i];
    return a;
  }
  static Vec Div(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] /= b.v[i];
    return a;
  }
  // a * b + c, rounded once with hardware FMA, but twice here.
  static Vec Fma(Vec a, Vec b, Vec c) {
    for (int i = 0; i < kLanes; ++i) a.v[i] = a.v[i] * b.v[i] + c.v[i];
    return a;
  }
  // Max and Min return b where a or b is NaN.
  static Vec Max(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
  }
  static Vec Min(Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
  }
  // Rounds to the nearest integer, ties to even.
  static Vec Round(Vec a) {
    for (int i = 0; i < kLanes; ++i) a.v[i] = std::nearbyintf(a.v[i]);
    return a;
  }
  // 2^n for integers n in [-126, 127]. NaN gives an unspecified finite value.
  static Vec Pow2(Vec n) {
    for (int i = 0; i < kLanes; ++i) {
      const float x = n.v[i];
      const int32_t e = x >= -126.0f && x <= 127.0f ? static_cast<int32_t>(x) : 0;
      n.v[i] = std::bit_cast<float>((e + 127) << 23);
    }
    return n;
  }
  // a * 2^n for integers n in [-252, 128], with gradual underflow to zero. A NaN in `a` stays NaN.
  static Vec ScalePow2(Vec a, Vec n) {
    const Vec half = Round(Mul(n, Set1(0.5f)));
    return Mul(Mul(a, Pow2(half)), Pow2(Sub(n, half)));
  }
  // Returns lanes first <= i < last of a and the other lanes of b.
  static Vec SelectRange(int first, int last, Vec a, Vec b) {
    for (int i = 0; i < kLanes; ++i) {
      if (i >= first && i < last) b.v[i] = a.v[i];
    }
    return b;
  }
  // Adds lanes i and i + 8, then i and i + 4, then i and i + 2, then i and i + 1.
  static float ReduceAdd(Vec a) {
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) a.v[i] += a.v[i + half];
    }
    return a.v[0];
  }
  static float ReduceMax(Vec a) {
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
    }
    return a.v[0];
  }
};

// Tile sizes of Linear, chosen so that the accumulators fit in the registers. kRowTile: rows per tile; kRowTileOfPairs:
// the same for bfloat16 weights. kPanelTile: panels per tile. kPanelTileOneRow: panels per tile if x has one row.
inline constexpr int kRowTile = 2, kRowTileOfPairs = 2;
inline constexpr int kPanelTile = 1;
inline constexpr int kPanelTileOneRow = 2;
// kQueryTile: maximum number of queries per score tile. kScoreRegisters: number of Vecs that the tile's accumulators
// and keys may occupy.
inline constexpr int kQueryTile = 2, kScoreRegisters = 6;
// kValueQueries: maximum number of queries per value tile. kValueChunks: number of Vecs of V per tile; a single query
// uses up to twice as many.
inline constexpr int kValueQueries = 1, kValueChunks = 4;
// Whether kernels prefetch weights even if x has a single row.
inline constexpr bool kPrefetchOneRow = false;

}  // namespace vllm::kernels::generic
