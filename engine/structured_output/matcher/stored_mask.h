// StoredMask: a mask in little memory, as the words in which it differs from another one. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/structured_output/matcher/token_slices.h"

namespace vllm {

class StoredMask {
 public:
  // Chooses `base`, which must outlive the StoredMask, or no tokens, whichever is more like the mask. REQUIRES: both
  // have the same size.
  StoredMask(const TokenBitmask& mask, const TokenBitmask& base);

  // Overwrites `mask`.
  void CopyTo(TokenBitmask& mask) const;
  // Returns the memory that the mask needs.
  size_t memory_bytes() const {
    return sizeof(StoredMask) + changes_.size() * sizeof(Change) + words_.size() * sizeof(uint32_t);
  }

 private:
  struct Change {
    uint32_t index;
    uint32_t word;
  };
  size_t size_;                         // in words
  const TokenBitmask* base_ = nullptr;  // null: no tokens
  std::vector<Change> changes_;         // the words that are not those of the base
  std::vector<uint32_t> words_;         // if not empty: the mask itself, because too many words differ
};

}  // namespace vllm
