// Reads the fields of config.json that are specific to a model architecture: activations, multipliers, softcaps,
// experts, and differences between layers. Pure functions; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets the fields of `config` that only some architectures have, according to config.model_type. REQUIRES: hidden_act
// and the sizes in `config` are set. Throws ModelError naming the field.
void ReadArchitectureConfig(const ConfigFields& fields, ModelConfig& config);

// Sets config.layers and config.sliding_window. REQUIRES: ReadRopeConfig and ReadArchitectureConfig have run. Throws
// ModelError naming the field.
void ReadLayerConfigs(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
