#include "app/batch/input/id_set.h"

#include <utility>

namespace vllm::app {

bool IdSet::InsertInto(std::vector<Hash128>& slots, const Hash128& hash) {
  const size_t mask = slots.size() - 1;
  for (size_t at = hash.lo & mask;; at = (at + 1) & mask) {
    if (slots[at] == hash) return false;
    if (slots[at] == Hash128()) {
      slots[at] = hash;
      return true;
    }
  }
}

bool IdSet::Insert(const Hash128& hash) {
  if (hash == Hash128()) return !std::exchange(has_zero_, true);
  Part& part = parts_[hash.hi % parts_.size()];
  if (4 * (part.count + 1) > 3 * part.slots.size()) {
    std::vector<Hash128> larger(part.slots.empty() ? 16 : 2 * part.slots.size());
    for (const Hash128& old : part.slots) {
      if (old != Hash128()) InsertInto(larger, old);
    }
    part.slots = std::move(larger);
  }
  if (!InsertInto(part.slots, hash)) return false;
  ++part.count;
  return true;
}

}  // namespace vllm::app
