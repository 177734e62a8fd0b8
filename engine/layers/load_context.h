// LoadContext: the inputs of the constructors of layers and models. Plain references, used on the rank's thread. A
// layer keeps only the reference to `step`; a DecoderModel also keeps one to config.model.
#pragma once

#include "engine/config/vllm_config.h"
#include "engine/layers/step_context.h"
#include "engine/model_loader/calibration/calibration.h"
#include "engine/model_loader/weight_memory.h"
#include "engine/model_loader/weights.h"

namespace vllm {

class CalibrationRun;
class LoRALayers;

struct LoadContext {
  const VllmConfig& config;
  const WeightSource& weights;
  WeightMemory& memory;
  const StepContext& step;  // outlives the layers
  // Receives the layers that adapters can change; null: the model never has adapters.
  LoRALayers* lora = nullptr;
  // Has the weights of --quantization int4 that were quantized on a text; null: they are rounded without one.
  Calibration* calibration = nullptr;
  // Quantizes the linear layers while the model reads a text, and outlives them; null: they are not.
  CalibrationRun* calibration_run = nullptr;
};

}  // namespace vllm
