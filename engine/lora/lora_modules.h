// LoRAModules: the modules of one adapter, from which the layers of one rank take theirs by name. It records which
// modules were taken, so that no tensor of an adapter is silently ignored. Used on the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lora/lora_adapter.h"

namespace vllm {

class LoRAModules {
 public:
  // `base` holds the weights of the model. `tied_head` is the tensor that also serves as the weight of lm_head, if the
  // base has no other. All are borrowed.
  LoRAModules(const LoRAAdapter& adapter, const WeightSource& base, const std::string& tied_head);

  // Returns the module for the layer `name`, a name as in the checkpoint and without ".weight", or null if the adapter
  // does not change the layer. The module is part of the adapter. Throws ModelError, naming the tensor, if its matrices
  // do not fit a weight [out_features, in_features], or if it has a copy of the layer's weight that differs from that
  // of the base.
  const LoRAModule* Take(LoRAModule::Kind kind, std::string_view name, int64_t in_features, int64_t out_features);
  // Throws ModelError, naming the first such tensor, if a module was not taken.
  void CheckAllTaken() const;

 private:
  void CheckCopy(const TensorView& copy, const std::string& tensor) const;

  const LoRAAdapter& adapter_;
  const WeightSource& base_;
  const std::string& tied_head_;
  std::vector<bool> taken_;  // [num_modules]
};

}  // namespace vllm
