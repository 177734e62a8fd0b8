// Worker: one tensor-parallel rank, with its threads, its shard of the weights, its KV cache and its ModelRunner. Owned
// by the executor. It is constructed and runs steps on the rank's thread, so that each page that it allocates is first
// touched on the NUMA node that uses it. The executor calls the accessors and SetCancellation while no step runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/attention/attention.h"
#include "engine/layers/step_context.h"
#include "engine/lora/lora_layers.h"
#include "engine/model_loader/weight_memory.h"
#include "engine/model_loader/weights.h"
#include "engine/models/decoder/model.h"
#include "engine/worker/model_runner.h"

namespace vllm {

class Worker {
 public:
  // Loads the rank's shard into `memory`. The rank's threads are pinned to `cores`, if any. `mask_thread` is null
  // except on rank 0, and borrowed. `calibration` and `calibration_run` are those of LoadContext. All ranks call it
  // together. Throws ModelError, ConfigError, ResourceError, std::bad_alloc or std::system_error (a thread cannot be
  // created).
  Worker(const VllmConfig& config, const WeightSource& weights, WeightMemory& memory, Communicator& communicator,
         const std::vector<int>& cores, LogitsBuffer& logits_buffer, MaskThread* mask_thread,
         Calibration* calibration = nullptr, CalibrationRun* calibration_run = nullptr);

  // Returns the bytes of one KV block on this rank.
  int64_t PageSizeBytes() const;
  // Returns the sliding window of each KV-cache group; 0 means full attention. The same on every rank.
  std::vector<int64_t> KVGroupWindows() const { return MakeKVCacheGroups(model_->Layers().attention).windows; }
  // Returns the blocks of one recurrent state; 0: the model has none. The same on every rank.
  int64_t NumStateBlocks() const;
  // Runs a small step on made-up tokens, so that memory that is allocated on first use is included when available
  // memory is measured. A large step is not needed, because step buffers are reserved at load. All ranks call it
  // together.
  void ProfileRun();
  // Runs one step that reads `texts`, which are tokens, and generates a token after each, with a separate KV cache. The
  // rows of the step are in the order of the texts. All ranks call it together. REQUIRES: each text fits in a block of
  // config.cache.block_size, and all of them in a step; config.model.max_model_len is larger.
  void ReadTexts(const std::vector<std::vector<int32_t>>& texts);
  // Returns the bytes of the KV cache and recurrent state that ReadTexts allocates for each text.
  int64_t TextBytes() const;
  // Returns the bytes of the step buffers. Most of their pages are untouched, so the operating system still counts them
  // as available memory.
  int64_t ScratchBytes() const { return static_cast<int64_t>(runner_->scratch_bytes()); }
  // Allocates num_blocks usable blocks and the null block. Throws std::bad_alloc.
  void InitializeKVCache(int64_t num_blocks);
  // Makes Execute throw StepCancelled soon after `flag` is set. The flag is borrowed. If it is null, Execute is never
  // cancelled.
  void SetCancellation(const kernels::CancellationFlag* flag) { threads_.SetCancellation(flag); }
  // Copy all K and V of this rank's block to or from `payload`, [PageSizeBytes()], in the order of KVCache. Any thread
  // may call these while no step runs.
  void CopyBlockOut(int32_t block_id, std::span<std::byte> payload) const { cache_.CopyBlockOut(block_id, payload); }
  void CopyBlockIn(int32_t block_id, std::span<const std::byte> payload) { cache_.CopyBlockIn(block_id, payload); }
  // See LoRALayers. The number of adapters and what is loaded is the same on every rank between calls of the executor.
  LoRALayers& lora_layers() { return lora_layers_; }
  // See ModelRunner::Execute. All ranks call it together.
  void Execute(const SchedulerOutput& scheduler_output, ModelRunnerOutput* output);

 private:
  void LoadModel(const WeightSource& weights, WeightMemory& memory, Calibration* calibration,
                 CalibrationRun* calibration_run);

  const VllmConfig& config_;
  kernels::ThreadPool threads_;
  Workspace workspace_;
  StepContext step_;
  LoRALayers lora_layers_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Pooler> pooler_;  // on rank 0
  KVCache cache_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace vllm
