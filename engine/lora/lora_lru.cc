#include "engine/lora/lora_lru.h"

#include <algorithm>

namespace vllm {

const LoRALru::Changes& LoRALru::Use(std::span<const int32_t> slots) {
  changes_.unload.clear();
  changes_.load.clear();
  for (const int32_t slot : slots) {
    const auto it = std::find(order_.begin(), order_.end(), slot);
    if (it == order_.end()) {
      changes_.load.push_back(slot);
      order_.push_back(slot);
    } else {
      std::rotate(it, it + 1, order_.end());
    }
  }
  // The adapters of this call are the last ones, so the first ones are others.
  while (order_.size() > capacity_) {
    changes_.unload.push_back(order_.front());
    order_.erase(order_.begin());
  }
  return changes_;
}

void LoRALru::Forget(int32_t slot) { std::erase(order_, slot); }

}  // namespace vllm
