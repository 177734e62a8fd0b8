#include "engine/executor/make_executor.h"

#include "engine/executor/tensor_parallel_executor.h"

namespace vllm {

LoadedExecutor MakeExecutor(const VllmConfig& config) {
  auto executor = std::make_unique<TensorParallelExecutor>(config);
  const LoadReport report = executor->load_report();
  return {std::move(executor), report};
}

}  // namespace vllm
