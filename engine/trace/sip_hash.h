// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash. Without the key, its values say nothing about the input
// except which inputs are equal. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace vllm {

struct SipKey {
  uint64_t k0 = 0;
  uint64_t k1 = 0;
};

// Returns the 64-bit hash of the bytes, which may be of any length.
uint64_t SipHash(const SipKey& key, std::string_view bytes);

}  // namespace vllm
