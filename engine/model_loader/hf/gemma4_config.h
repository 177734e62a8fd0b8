// Reads the fields of config.json that only Gemma 4 has. Accepts the form of the hub (global_head_dim and
// num_global_key_value_heads) and that of transformers 5 (per_layer_config). Pure functions; any thread. They throw
// ModelError naming the field.
#pragma once

#include <cstdint>

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Sets rotary_dim, rope_theta, rope_local_theta and rope_scaling of `config`. REQUIRES: head_dim is set.
void ReadGemma4Rope(const ConfigFields& fields, ModelConfig& config);

// Sets the fields that apply to all layers.
void ReadGemma4(const ConfigFields& fields, ModelConfig& config);

// Sets the heads of full-attention layers, and which layers share K and V. REQUIRES: the sliding windows of
// config.layers are set.
void ReadGemma4Layers(const ConfigFields& fields, ModelConfig& config);

// Makes the last `num_shared` layers read K and V of the last layer of their type before them. Returns false if there
// is none. REQUIRES: 0 <= num_shared <= number of layers; the sliding windows of config.layers are set.
bool ShareKV(int64_t num_shared, ModelConfig& config);

}  // namespace vllm
