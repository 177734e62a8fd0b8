// CancellingExecutor: wraps the real executor and cancels steps. For each step, the test chooses the check of the
// cancellation flag at which the step ends. Owned by the EngineCore under test and called on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"

namespace vllm::testing_support {

class CancellingExecutor final : public Executor {
 public:
  // Returns the number of checks of the flag after which this attempt at a step is cancelled, or a negative number for
  // never. `attempt` counts the calls of ExecuteModel from 0.
  using Plan = std::function<int64_t(int64_t attempt)>;

  CancellingExecutor(const VllmConfig& config, Plan plan)
      : inner_(MakeExecutor(config).executor), plan_(std::move(plan)) {
    inner_->SetCancellation(&flag_);
  }

  int64_t PageSizeBytes() const override { return inner_->PageSizeBytes(); }
  std::vector<int64_t> KVGroupWindows() const override { return inner_->KVGroupWindows(); }
  int64_t NumStateBlocks() const override { return inner_->NumStateBlocks(); }
  int64_t DetermineAvailableMemory() override { return inner_->DetermineAvailableMemory(); }
  void InitializeKVCache(int64_t num_blocks) override { inner_->InitializeKVCache(num_blocks); }
  const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& scheduler_output) override {
    flag_.Reset();
    const int64_t num_checks = plan_(num_attempts_++);
    if (num_checks >= 0) flag_.CancelAfter(num_checks);
    return inner_->ExecuteModel(scheduler_output);
  }

  static ExecutorFactory Factory(Plan plan) {
    return [plan = std::move(plan)](const VllmConfig& config) {
      return LoadedExecutor{std::make_unique<CancellingExecutor>(config, plan), {}};
    };
  }

 private:
  kernels::CancellationFlag flag_;
  std::unique_ptr<Executor> inner_;
  Plan plan_;
  int64_t num_attempts_ = 0;
};

}  // namespace vllm::testing_support
