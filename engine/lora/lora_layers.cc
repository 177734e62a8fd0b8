#include "engine/lora/lora_layers.h"

namespace vllm {

void LoRALayers::Add(std::shared_ptr<const LoRAAdapter> adapter, const WeightSource& base) {
  LoRAModules modules(*adapter, base, tied_head_);
  const size_t slot = adapters_.size();
  for (LoRALayer* layer : layers_) layer->Take(slot, modules);
  modules.CheckAllTaken();
  adapters_.push_back(std::move(adapter));
}

void LoRALayers::Load(size_t slot) {
  for (LoRALayer* layer : layers_) layer->Load(slot);
}

void LoRALayers::Unload(size_t slot) {
  for (LoRALayer* layer : layers_) layer->Unload(slot);
}

}  // namespace vllm
