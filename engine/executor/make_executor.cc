#include "engine/executor/make_executor.h"

#include "engine/executor/tensor_parallel_executor.h"

namespace vllm {

namespace {

LoadedExecutor Make(const VllmConfig& config, Calibration* calibration) {
  auto executor = std::make_unique<TensorParallelExecutor>(config, calibration);
  const LoadReport report = executor->load_report();
  return {std::move(executor), report};
}

}  // namespace

LoadedExecutor MakeExecutor(const VllmConfig& config) { return Make(config, nullptr); }

LoadedExecutor MakeCalibratedExecutor(const VllmConfig& config, Calibration& calibration) {
  return Make(config, &calibration);
}

}  // namespace vllm
