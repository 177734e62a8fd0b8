// DerivedMaxModelLen: the maximum context length that a model supports, in tokens, derived from max_position_embeddings
// and the RoPE scaling. Pure function; any thread.
#pragma once

#include <cstdint>

#include "engine/config/model_config.h"

namespace vllm {

// Returns max_position_embeddings, multiplied by the factor of linear or dynamic RoPE scaling. With YaRN, returns
// original_max_position_embeddings times the factor. With llama3, longrope or a GGUF file's frequency factors, returns
// max_position_embeddings, which is already the scaled length. The result is clamped to 1..2^30.
int64_t DerivedMaxModelLen(const ModelConfig& config);

}  // namespace vllm
