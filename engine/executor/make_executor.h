// MakeExecutor: the ExecutorFactory of programs, and of tests that need a real model. The caller owns the result. Call
// it on the thread that will run the executor.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"
#include "engine/model_loader/calibration/calibration.h"

namespace vllm {

// Loads the model. Throws ModelError, ConfigError or ResourceError.
LoadedExecutor MakeExecutor(const VllmConfig& config);
// Does the same with a calibration for --quantization int4, which is borrowed until the model is loaded.
LoadedExecutor MakeCalibratedExecutor(const VllmConfig& config, Calibration& calibration);

}  // namespace vllm
