// ModelRunner: runs one rank's share of a step: rows in, sampled tokens out. Every rank computes its columns of the
// logits, then samples its share of the rows; rank 0 returns all of them. Used by the rank's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/models/model.h"
#include "engine/sample/sampler.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/scheduler_output.h"
#include "engine/worker/input_batch.h"
#include "engine/worker/logits_buffer.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

class ModelRunner {
 public:
  // `shared` is the same object for all ranks.
  ModelRunner(const VllmConfig& config, const StepContext& step, Model& model, LogitsBuffer& shared);

  // Fills `output` on rank 0 only.
  void Execute(const SchedulerOutput& scheduler_output, KVCache& cache, ModelRunnerOutput* output);

  // Bytes reserved for the largest allowed step. Most of their pages are untouched until such a step.
  size_t scratch_bytes() const;

 private:
  // A row that needs logits: its entry, and the prompt token that follows it, or -1 if a token is to be sampled.
  struct LogitsRow {
    size_t entry = 0;
    int64_t row = 0;
    int32_t prompt_target = -1;
  };
  void ReservePlans();
  void CollectLogitsRows();
  // Called once all rows are done, because a cancelled step computes its prompt logprobs again.
  void CountPromptLogprobs();
  void ComputeRows(size_t begin, size_t end);
  void SampleRow(size_t index, int thread, float* logits_row);
  void FillOutput(ModelRunnerOutput& output);

  const VllmConfig& config_;
  const StepContext& step_;
  Model& model_;
  LogitsBuffer& shared_;
  InputBatch batch_;
  kernels::AlignedBuffer hidden_;    // [max_num_batched_tokens, hidden_size]
  kernels::AlignedBuffer gathered_;  // [LogitsBuffer::MaxRows, hidden_size]
  std::vector<LogitsRow> logits_rows_;
  std::vector<Sampler> samplers_;  // [num_threads]
  size_t model_scratch_bytes_ = 0;
};

}  // namespace vllm
