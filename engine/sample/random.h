// Random numbers that are a function of (seed, position) alone, so that a token does not depend on how many were drawn
// before it, in which step, or beside which other rows. Pure; any thread.
#pragma once

#include <cstdint>

namespace vllm {

// SplitMix64's finalizer (Steele, Lea and Flood, 2014): every input bit changes every output bit with probability 1/2.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Uniform in [0, 1), a multiple of 2^-53. Seeds that differ by one, as the children of one request have, give unrelated
// streams: the seed is mixed before the position is counted on from it.
inline double UniformAt(uint64_t seed, uint64_t position) {
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;
  uint64_t stream = MixBits(seed + kGamma);
  return static_cast<double>(MixBits(stream + (position + 1) * kGamma) >> 11) * 0x1p-53;
}

}  // namespace vllm
