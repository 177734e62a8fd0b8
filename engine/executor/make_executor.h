// MakeExecutor: the ExecutorFactory of programs, and of tests that need a real model. The caller owns the result. Call
// it on the thread that will run the executor.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"

namespace vllm {

// Loads the model. Throws ModelError, ConfigError or ResourceError.
LoadedExecutor MakeExecutor(const VllmConfig& config);

}  // namespace vllm
