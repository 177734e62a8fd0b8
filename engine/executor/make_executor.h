// MakeExecutor: the ExecutorFactory of the product.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"

namespace vllm {

std::unique_ptr<Executor> MakeExecutor(const VllmConfig& config);

}  // namespace vllm
