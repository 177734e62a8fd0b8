// Reads the rotary embedding's part of config.json. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets rope_theta and rope_scaling of `config` from rope_theta and rope_scaling, or from the rope_parameters that
// transformers 5 writes in their place. REQUIRES: config.max_position_embeddings is set.
// Throws ModelError; an unknown kind is refused by name.
void ReadRopeConfig(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
