// TensorParallelExecutor: the real Executor. It has one Worker per rank: rank 0 in the calling thread, each other rank
// on its own thread. See executor.h for the contracts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"
#include "engine/executor/rank_group.h"
#include "engine/worker/worker.h"

namespace vllm {

class TensorParallelExecutor final : public Executor {
 public:
  // Loads the weights on all ranks. Throws ModelError, ConfigError or ResourceError.
  explicit TensorParallelExecutor(const VllmConfig& config);
  ~TensorParallelExecutor() override;

  int64_t PageSizeBytes() const override;
  std::vector<int64_t> KVGroupWindows() const override { return workers_[0]->KVGroupWindows(); }
  int64_t DetermineAvailableMemory() override;
  std::string memory_bound() const override { return memory_bound_; }
  int64_t SpareMemory(int64_t num_blocks) const override;
  void InitializeKVCache(int64_t num_blocks) override;
  void SetCancellation(const kernels::CancellationFlag* flag) override;
  const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& scheduler_output) override;

  // All ranks together.
  LoadReport load_report() const;

 private:
  void PlaceRanks();
  // Bytes that are mapped and will be needed, but are not written yet.
  int64_t UntouchedBytes() const;

  const VllmConfig config_;
  std::unique_ptr<LogitsBuffer> logits_;
  std::unique_ptr<RankGroup> ranks_;
  std::vector<std::vector<int>> cores_;  // of each rank; empty if ranks are not pinned
  std::vector<int> caller_cores_;        // of the calling thread before it was pinned
  std::vector<std::unique_ptr<Worker>> workers_;
  ModelRunnerOutput output_;
  std::string memory_bound_;
};

}  // namespace vllm
