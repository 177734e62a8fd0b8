// MakeExecutor: the ExecutorFactory of the product.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"

namespace vllm {

// Loads the model. Throws ModelError, ConfigError or ResourceError.
LoadedExecutor MakeExecutor(const VllmConfig& config);

}  // namespace vllm
