#include "engine/core/request_index.h"

namespace vllm {

RequestIndex::Slot& RequestIndex::Probe(RequestId request_id) {
  const size_t mask = slots_.size() - 1;
  // Ids are assigned consecutively. The multiplication spreads the ids of a step well, even with a constant stride
  // between them.
  size_t i = static_cast<size_t>(request_id * 0x9E3779B97F4A7C15ull >> 32) & mask;
  while (slots_[i].generation == generation_ && slots_[i].request_id != request_id) i = (i + 1) & mask;
  return slots_[i];
}

size_t RequestIndex::FindOrInsert(RequestId request_id, size_t fresh) {
  if ((size_ + 1) * 2 > slots_.size()) Grow();
  Slot& slot = Probe(request_id);
  if (slot.generation != generation_) {
    slot = {request_id, generation_, fresh};
    ++size_;
  }
  return slot.position;
}

void RequestIndex::Clear() {
  ++generation_;
  size_ = 0;
}

void RequestIndex::Grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.generation == generation_) Probe(slot.request_id) = slot;
  }
}

}  // namespace vllm
