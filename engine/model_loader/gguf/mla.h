// Reads the GGUF metadata of multi-head latent attention and its experts (the architecture deepseek2). Pure functions;
// any thread. They throw ModelError naming the key.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// Sets the sizes of latent attention, num_key_value_heads and head_dim. llama.cpp's converter writes the sizes of the
// cached vectors under attention.key_length and value_length, and those of the heads under key_length_mla and
// value_length_mla. Files from before it split attn_kv_b have only the first keys, with the sizes of the heads.
void ReadGgufMLASizes(const GgufMetadata& keys, ModelConfig& config);

// Sets the architecture of the Hugging Face checkpoint by the function that scores the experts. REQUIRES: the experts
// of `config` are set.
void ReadGgufMLAExperts(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
