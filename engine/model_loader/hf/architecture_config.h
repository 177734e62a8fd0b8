// Reads what config.json says in a family's own words: activations, multipliers, caps, experts, and how layers differ.
// Pure functions; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets the fields of `config` that only some families have, as config.model_type reads them. REQUIRES: the sizes of
// `config` are set. Throws ModelError naming the field.
void ReadArchitectureConfig(const ConfigFields& fields, ModelConfig& config);

// Sets config.layers and config.sliding_window. REQUIRES: ReadArchitectureConfig has run. Throws ModelError naming the
// field.
void ReadLayerConfigs(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
