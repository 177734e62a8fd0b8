// Reads the fields of config.json for multi-head latent attention. Pure functions; any thread. They throw ModelError
// naming the field.
#pragma once

#include <string_view>

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Returns true if models of this model_type have latent attention.
bool HasMLA(std::string_view model_type);

// Sets the sizes of latent attention, num_key_value_heads and head_dim. REQUIRES: num_attention_heads is set.
void ReadMLASizes(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
