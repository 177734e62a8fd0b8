// Reads the keys of GGUF files of Gemma 3n. Pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// Sets the streams, the per-layer inputs, the sparse gates and the layers that share K and V. REQUIRES: the sliding
// windows of config.layers are set. Throws ModelError naming the key or the tensor.
void ReadGgufGemma3n(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
