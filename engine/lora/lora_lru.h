// LoRALru: decides which LoRA adapters are loaded, at most `capacity` at a time. When another one is needed, the
// adapter whose last use is longest ago is unloaded, as in vLLM's LRUCacheWorkerLoRAManager. Owned by the executor and
// used on its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vllm {

class LoRALru {
 public:
  // REQUIRES: capacity >= 1.
  explicit LoRALru(int64_t capacity) : capacity_(static_cast<size_t>(capacity)) {}

  struct Changes {
    std::vector<int32_t> unload;  // before `load`
    std::vector<int32_t> load;    // in the order of the slots that were asked for
    bool empty() const { return unload.empty() && load.empty(); }
  };
  // Marks the adapters as used, and as loaded. Returns what the caller must do so that they are, valid until the next
  // call. REQUIRES: at most `capacity` different slots.
  const Changes& Use(std::span<const int32_t> slots);
  // Marks an adapter as not loaded.
  void Forget(int32_t slot);

  size_t num_loaded() const { return order_.size(); }

 private:
  size_t capacity_;
  std::vector<int32_t> order_;  // the loaded adapters, the one whose last use is longest ago first
  Changes changes_;
};

}  // namespace vllm
