// CheckWeights: whether a checkpoint has what its model needs, without reading it.
#pragma once

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Builds config.model with every tensor looked up and none read, and drops it. Takes milliseconds and little memory,
// however large the model is. Throws ModelError for an unknown architecture, and naming the tensor that is missing or
// whose type or shape the model cannot use.
void CheckWeights(const VllmConfig& config, const WeightSource& weights);

}  // namespace vllm
