// LoadPeftAdapter: reads a LoRA adapter that PEFT has saved: adapter_config.json and adapter_model.safetensors in one
// directory. A pure function of the files; any thread.
//
// Names of tensors, where MODULE is the path of a module of the base model, such as "model.layers.0.mlp.up_proj":
//   base_model.model.MODULE.lora_A.weight [r, in]       base_model.model.MODULE.lora_B.weight [out, r]
//   base_model.model.MODULE.lora_embedding_A [r, vocab] base_model.model.MODULE.lora_embedding_B [hidden, r]
//   base_model.model.MODULE.lora_B.bias [out]           with lora_bias
//   base_model.model.MODULE.lora_magnitude_vector [out] with use_dora; some files have ".weight" after it
//   base_model.model.MODULE.bias [out]                  with bias all or lora_only
//   base_model.model.MODULE.base_layer.weight           a copy of the base layer's weight
//   base_model.model.MODULE.base_layer.bias             the same as MODULE.bias, of an adapted layer
// Some files lack "base_model.model." or have the adapter's name, "default", before the last component.
#pragma once

#include <memory>
#include <string>

#include "engine/lora/lora_adapter.h"

namespace vllm {

// Loads the adapter in `directory` and calls it `name`. Throws ModelError if a file is missing or malformed, if a
// tensor does not belong to a LoRA module, or if the adapter needs a feature that is not supported. Throws
// ResourceError if the weights cannot be mapped.
std::shared_ptr<const LoRAAdapter> LoadPeftAdapter(const std::string& name, const std::string& directory);

}  // namespace vllm
