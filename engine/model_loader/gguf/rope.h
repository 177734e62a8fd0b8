// The rotary embedding that a GGUF file asks for: keys under "<architecture>.rope." and the tensors of its divisors.
// A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/file.h"

namespace vllm {

// Fills rope_theta, rope_local_theta, rotary_dim, rope_scaling and, where only some layers slide, use_local_rope.
// REQUIRES: sizes and windows are filled. Throws ModelError.
void ReadGgufRope(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
