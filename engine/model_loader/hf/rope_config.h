// Reads the rotary embedding settings of config.json. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets rotary_dim, rope_theta, rope_local_theta and rope_scaling of `config`. Reads rope_theta and rope_scaling, or the
// rope_parameters that transformers 5 writes instead. REQUIRES: model_type, head_dim and max_position_embeddings of
// `config` are set. Throws ModelError; the error for an unknown scaling type contains its name.
void ReadRopeConfig(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
