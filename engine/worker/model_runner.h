// ModelRunner: one rank's step: rows in, sampled tokens out. Every rank computes its share of the logits; rank 0
// samples. Used by the rank's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/models/model.h"
#include "engine/sample/sampler.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/scheduler_output.h"
#include "engine/worker/input_batch.h"
#include "kernels/aligned_buffer.h"

namespace vllm {

class ModelRunner {
 public:
  // `shared_logits` [LogitsRows(config), vocab_size]: one buffer that all ranks write their columns of.
  ModelRunner(const VllmConfig& config, const RankContext& rank, Model& model, float* shared_logits);

  // Rows of logits computed at a time; more are done in turns.
  static int64_t LogitsRows(const VllmConfig& config);

  // `output` is filled on rank 0 only.
  void Execute(const SchedulerOutput& scheduler_output, KvCache& cache, ModelRunnerOutput* output);

  // Writes every page of the step's buffers, so that memory measured afterwards is memory used.
  void Prefault();

 private:
  // A row whose logits are wanted: the entry it belongs to, and the prompt token that follows it, or -1 where one is to
  // be sampled.
  struct LogitsRow {
    size_t entry = 0;
    int64_t row = 0;
    int32_t prompt_target = -1;
  };
  struct RowResult {
    int32_t token_id = -1;
    bool has_logprobs = false;
    Logprobs logprobs;
    std::string error;
  };

  void ReservePlans();
  void CollectLogitsRows();
  void ComputeRows(size_t begin, size_t end);
  void SampleRow(size_t index, int thread, const float* logits_row);
  void FillOutput(ModelRunnerOutput& output);

  const VllmConfig& config_;
  const RankContext& rank_;
  Model& model_;
  float* shared_logits_;
  InputBatch batch_;
  AlignedBuffer hidden_;    // [max_num_batched_tokens, hidden_size]
  AlignedBuffer gathered_;  // [LogitsRows, hidden_size]
  std::vector<LogitsRow> logits_rows_;
  std::vector<RowResult> results_;  // of logits_rows_, reused
  std::vector<Sampler> samplers_;   // a thread, rank 0 only
};

}  // namespace vllm
