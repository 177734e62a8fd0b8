// LoRALayers: the layers of one rank's model that LoRA adapters can change. Adapters are added when the model is loaded
// or while the engine runs, and each gets the next slot, the index that StepContext's users know it by. An adapter
// takes memory only while it is loaded. Owned by the Worker, whose model owns the layers; used on the rank's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/lora/lora_adapter.h"
#include "engine/lora/lora_modules.h"

namespace vllm {

// A layer that adapters can change. Its address must not change once it is registered.
class LoRALayer {
 public:
  // Takes the layer's modules, if there are any, for the adapter of `slot`. Replaces what an earlier call with the same
  // slot has taken. Throws ModelError if a module does not fit the layer.
  virtual void Take(size_t slot, LoRAModules& modules) = 0;
  // Packs what was taken for the slot. With DoRA, all ranks call this together.
  virtual void Load(size_t slot) = 0;
  // Frees what Load has packed.
  virtual void Unload(size_t slot) = 0;

 protected:
  ~LoRALayer() = default;
};

class LoRALayers {
 public:
  // Called by the layers and the model while they are built.
  void Register(LoRALayer* layer) { layers_.push_back(layer); }
  // Sets the tensor that also serves as the weight of lm_head, if the base has no other.
  void SetTiedHead(std::string tensor) { tied_head_ = std::move(tensor); }

  size_t num_adapters() const { return adapters_.size(); }
  // Gives the layers the modules of another adapter, whose slot is num_adapters(). Loads nothing. `base` holds the
  // weights of the model. Throws ModelError, naming the tensor, if a module belongs to no layer or does not fit; the
  // adapter is then not added.
  void Add(std::shared_ptr<const LoRAAdapter> adapter, const WeightSource& base);
  // Forgets the adapters from slot `num_adapters` on, none of which is loaded.
  void Resize(size_t num_adapters) { adapters_.resize(num_adapters); }
  // Load and unload an adapter in all layers. With DoRA, all ranks call Load together.
  void Load(size_t slot);
  void Unload(size_t slot);

 private:
  std::vector<LoRALayer*> layers_;
  std::string tied_head_;
  std::vector<std::shared_ptr<const LoRAAdapter>> adapters_;  // by slot; own the tensors that layers point to
};

}  // namespace vllm
