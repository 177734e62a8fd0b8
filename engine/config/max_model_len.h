// How long a context a model was made for. A pure function; any thread.
#pragma once

#include <cstdint>

#include "engine/config/model_config.h"

namespace vllm {

// max_position_embeddings, stretched by the scaling's factor where that counts from it: linear and dynamic; yarn counts
// from original_max_position_embeddings; llama3's factor is in max_position_embeddings already. At most 2^30.
int64_t DerivedMaxModelLen(const ModelConfig& config);

}  // namespace vllm
