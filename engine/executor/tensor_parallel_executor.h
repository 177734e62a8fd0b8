// TensorParallelExecutor: the Executor that programs use. It has one Worker per rank: rank 0 runs in the calling
// thread, each other rank on its own thread. Owned by EngineCore and called from its thread only. See executor.h for
// the contracts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"
#include "engine/executor/rank_group.h"
#include "engine/lora/lora_lru.h"
#include "engine/model_loader/packed_cache/matrix_store.h"
#include "engine/worker/worker.h"

namespace vllm {

class TensorParallelExecutor final : public Executor {
 public:
  // Loads the weights on all ranks. `calibration` is that of LoadContext, and borrowed during the load. Throws
  // ModelError, ConfigError or ResourceError.
  explicit TensorParallelExecutor(const VllmConfig& config, Calibration* calibration = nullptr);
  ~TensorParallelExecutor() override;

  int64_t PageSizeBytes() const override;
  std::vector<int64_t> KVGroupWindows() const override { return workers_[0]->KVGroupWindows(); }
  int64_t NumStateBlocks() const override { return workers_[0]->NumStateBlocks(); }
  int64_t DetermineAvailableMemory() override;
  std::string memory_bound() const override { return memory_bound_; }
  int64_t SpareMemory(int64_t num_blocks) const override;
  void InitializeKVCache(int64_t num_blocks) override;
  void SetCancellation(const kernels::CancellationFlag* flag) override;
  std::span<const std::chrono::duration<double>> RankTimes() const override { return rank_times_; }
  void CopyBlockOut(int32_t block_id, std::span<std::byte> payload) override;
  void CopyBlockIn(int32_t block_id, std::span<const std::byte> payload) override;
  bool CanCopyBlocks() const override { return true; }
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override;
  const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& scheduler_output) override;

  const LoadReport& load_report() const;

 private:
  void PlaceRanks();
  // Returns the bytes that are mapped and that steps will need, but that still count as available memory.
  int64_t UntouchedBytes() const;
  // Loads these adapters on all ranks, and unloads others if more than MaxCpuLoRAs would be loaded. Throws
  // ResourceError before it loads one for which the memory is not enough.
  void LoadLoRAs(std::span<const int32_t> slots);

  const VllmConfig config_;
  std::shared_ptr<MatrixStore> matrices_;
  std::unique_ptr<LogitsBuffer> logits_;
  std::unique_ptr<MaskThread> mask_thread_;
  std::unique_ptr<RankGroup> ranks_;
  std::vector<std::vector<int>> cores_;  // the cores of each rank; empty if ranks are not pinned
  std::vector<int> caller_cores_;        // the calling thread's cores before it was pinned; empty if it was not
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::chrono::duration<double>> rank_times_;     // each rank writes its own element
  std::vector<std::shared_ptr<const LoRAAdapter>> adapters_;  // by slot
  LoRALru loaded_loras_;
  const kernels::CancellationFlag* cancellation_ = nullptr;
  ModelRunnerOutput output_;
  std::string memory_bound_;
};

}  // namespace vllm
