// CheckWeights: checks that a checkpoint has every tensor of its model, without reading the matrices. A pure function;
// any thread.
#pragma once

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Builds config.model on a single rank and discards it. Looks up every tensor, but reads only vectors such as norms and
// biases. Takes milliseconds and little memory for a model of any size. Throws ModelError if the architecture is
// unknown, or if a tensor is missing or has an unusable type or shape, and ConfigError or ResourceError as DecoderModel
// does.
void CheckWeights(const VllmConfig& config, const WeightSource& weights);

}  // namespace vllm
