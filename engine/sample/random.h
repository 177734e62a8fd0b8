// Random numbers that depend only on (seed, position). A sampled token therefore does not depend on how many numbers
// were drawn before it, on the step, or on the other rows of the batch. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "engine/config/hash.h"

namespace vllm {

// Returns a uniformly distributed number in [0, 1), a multiple of 2^-53. The seed is mixed before the position is
// added, so seeds that differ by one, such as those of a request's n sequences, give unrelated streams.
inline double UniformAt(uint64_t seed, uint64_t position) {
  uint64_t stream = MixBits(seed + kSplitMixGamma);
  return static_cast<double>(MixBits(stream + (position + 1) * kSplitMixGamma) >> 11) * 0x1p-53;
}

}  // namespace vllm
