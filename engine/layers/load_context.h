// LoadContext: what a layer is built from. Used by constructors only; a layer keeps `step` and nothing else of it.
#pragma once

#include "engine/config/vllm_config.h"
#include "engine/layers/step_context.h"
#include "engine/model_loader/weight_memory.h"
#include "engine/model_loader/weights.h"

namespace vllm {

struct LoadContext {
  const VllmConfig& config;
  const WeightSource& weights;
  WeightMemory& memory;
  const StepContext& step;  // outlives the layers
};

}  // namespace vllm
