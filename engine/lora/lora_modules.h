// LoRAModules: the modules of all adapters of an engine, from which the layers of one rank take theirs by name while
// the model is built. It records which modules were taken, so that no tensor of an adapter is silently ignored. Owned
// by the Worker while it loads; used on the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/lora/lora_adapter.h"

namespace vllm {

class LoRAModules {
 public:
  // Adapters are addressed by their index, the slot of StepContext's users.
  LoRAModules(std::span<const std::shared_ptr<const LoRAAdapter>> adapters, const WeightSource& base);

  // Sets the tensor that also serves as the weight of lm_head, if the base has no other.
  void SetTiedHead(std::string tensor) { tied_head_ = std::move(tensor); }

  size_t num_adapters() const { return adapters_.size(); }
  // Returns the module of an adapter for the layer `name`, a name as in the checkpoint and without ".weight", or null
  // if the adapter does not change the layer. Throws ModelError, naming the tensor, if its matrices do not fit a weight
  // [out_features, in_features], or if it has a copy of the layer's weight that differs from that of the base.
  const LoRAModule* Take(size_t adapter, LoRAModule::Kind kind, std::string_view name, int64_t in_features,
                         int64_t out_features);
  // Throws ModelError, naming the first such tensor, if a module was not taken.
  void CheckAllTaken() const;

 private:
  void CheckCopy(const LoRAAdapter& adapter, const TensorView& copy, const std::string& tensor) const;

  std::span<const std::shared_ptr<const LoRAAdapter>> adapters_;
  const WeightSource& base_;
  std::string tied_head_;
  std::vector<std::vector<bool>> taken_;  // [num_adapters][num_modules]
};

}  // namespace vllm
