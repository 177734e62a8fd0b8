// Random numbers that depend only on (seed, position). A token therefore does not depend on how many numbers were drawn
// before it, on the step, or on the other rows of the batch. Pure functions; any thread.
#pragma once

#include <cstdint>

namespace vllm {

// SplitMix64's finalizer (Steele, Lea and Flood, 2014): every input bit changes every output bit with probability 1/2.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns a uniformly distributed number in [0, 1), a multiple of 2^-53. The seed is mixed before the position is
// added, so seeds that differ by one, such as those of a request's children, give unrelated streams.
inline double UniformAt(uint64_t seed, uint64_t position) {
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;
  uint64_t stream = MixBits(seed + kGamma);
  return static_cast<double>(MixBits(stream + (position + 1) * kGamma) >> 11) * 0x1p-53;
}

}  // namespace vllm
