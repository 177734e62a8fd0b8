// CheckWeights: checks that a checkpoint has every tensor of its model, without reading them.
#pragma once

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Builds config.model, looking up every tensor and reading none, and drops it. Takes milliseconds and little memory for
// a model of any size. Throws ModelError if the architecture is unknown, or if a tensor is missing or has an unusable
// type or shape.
void CheckWeights(const VllmConfig& config, const WeightSource& weights);

}  // namespace vllm
