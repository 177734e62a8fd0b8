// Reads the GGUF metadata that only Gemma 4 has. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// Sets the heads, widths and sharing of the layers, the per-layer inputs and the rotary embedding of `config`.
// REQUIRES: the other sizes, and the sliding windows of config.layers, are set. Throws ModelError naming the key or the
// tensor.
void ReadGgufGemma4(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
