// Reads the fields of config.json that only Gemma 3n has. Pure functions; any thread. They throw ModelError naming the
// field.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets the fields that apply to all layers.
void ReadGemma3n(const ConfigFields& fields, ModelConfig& config);

// Sets the widths and sparsities of the layers, and which layers share K and V. REQUIRES: the sliding windows of
// config.layers are set.
void ReadGemma3nLayers(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
