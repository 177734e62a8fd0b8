// Reads the rotary embedding settings of a GGUF file: the keys under "<architecture>.rope." and the tensors with
// frequency divisors. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// Sets rope_theta, rotary_dim and rope_scaling, and for Gemma 3 also rope_local_theta and each layer's use_local_rope.
// REQUIRES: model_type, the sizes and the layers' sliding windows are set. Throws ModelError.
void ReadGgufRope(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
