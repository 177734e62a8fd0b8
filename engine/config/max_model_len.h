// DerivedMaxModelLen: the maximum context length that a model supports, derived from its positions and rope scaling.
// Pure function; any thread.
#pragma once

#include <cstdint>

#include "engine/config/model_config.h"

namespace vllm {

// Returns max_position_embeddings, multiplied by the factor of linear or dynamic rope scaling. Yarn multiplies
// original_max_position_embeddings instead. With llama3 and longrope, max_position_embeddings already is the scaled
// length. At most 2^30.
int64_t DerivedMaxModelLen(const ModelConfig& config);

}  // namespace vllm
