// IdSet: a set of 128-bit hashes of ids. A million ids of any length take 24 to 48 MiB; collisions are practically
// impossible. Owned by RowSource; main thread.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/config/hash.h"

namespace vllm::app {

class IdSet {
 public:
  // Returns true if the hash was not in the set. O(1) amortized.
  bool Insert(const Hash128& hash);

 private:
  // Open addressing. The set is split, so that growing copies only a small part of it at a time.
  struct Part {
    std::vector<Hash128> slots;  // the size is a power of two; an empty slot is all zeros
    size_t count = 0;
  };
  static bool InsertInto(std::vector<Hash128>& slots, const Hash128& hash);

  std::array<Part, 64> parts_;
  bool has_zero_ = false;  // the hash that marks empty slots
};

}  // namespace vllm::app
