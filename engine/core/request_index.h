// RequestIndex: a small open-addressing hash map from request id to position. Clearing is O(1) and keeps the memory, so
// a step allocates nothing once the map has grown. Owned by OutputQueue; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/request/request_id.h"

namespace vllm {

class RequestIndex {
 public:
  // Returns the position of `request_id`. If the id has none, stores and returns `fresh`. Amortized O(1).
  size_t FindOrInsert(RequestId request_id, size_t fresh);
  void Clear();
  size_t size() const { return size_; }

 private:
  struct Slot {
    RequestId request_id = 0;
    uint64_t generation = 0;  // live if equal to generation_
    size_t position = 0;
  };
  Slot& Probe(RequestId request_id);
  void Grow();

  std::vector<Slot> slots_;  // the size is a power of two; at most half of the slots are live
  uint64_t generation_ = 1;
  size_t size_ = 0;
};

}  // namespace vllm
