// Worker: one tensor-parallel rank: its threads, its shard of the weights, its KV cache and its ModelRunner.
// Constructed and used on the rank's thread, so that memory is first touched where it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/attention/attention.h"
#include "engine/layers/step_context.h"
#include "engine/model_loader/load_report.h"
#include "engine/model_loader/weights.h"
#include "engine/models/model.h"
#include "engine/worker/model_runner.h"

namespace vllm {

class Worker {
 public:
  // Loads the rank's shard. `cores` are the rank's own, or empty. Throws what loading throws.
  Worker(const VllmConfig& config, const WeightSource& weights, Communicator& communicator,
         const std::vector<int>& cores, LogitsBuffer& shared_logits);

  const LoadReport& load_report() const { return load_report_; }
  // Bytes of one KV block on this rank.
  int64_t PageSizeBytes() const;
  // The sliding window of each KV-cache group; 0 means full attention. Equal on every rank.
  std::vector<int64_t> KVGroupWindows() const { return MakeKVCacheGroups(model_->KVLayers()).windows; }
  // Runs a small step on made-up tokens, with all ranks, so that memory allocated on first use counts when memory is
  // measured. The step buffers need no large step: they were reserved at load.
  void ProfileRun();
  // Bytes of the step buffers. They count as needed although most of their pages are untouched.
  int64_t ScratchBytes() const { return static_cast<int64_t>(runner_->scratch_bytes()); }
  void InitializeKVCache(int64_t num_blocks);
  void SetCancellation(const kernels::CancellationFlag* flag) { threads_.SetCancellation(flag); }
  void Execute(const SchedulerOutput& scheduler_output, ModelRunnerOutput* output);

 private:
  const VllmConfig& config_;
  kernels::ThreadPool threads_;
  Workspace workspace_;
  StepContext step_;
  LoadReport load_report_;
  std::unique_ptr<Model> model_;
  KVCache cache_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace vllm
