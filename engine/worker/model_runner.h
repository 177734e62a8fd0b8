// ModelRunner: runs one rank's share of a step, from the scheduled tokens to the sampled ones. Every rank computes its
// columns of the logits, then samples its share of the rows; rank 0 returns the results of all ranks. Owned by the
// Worker; used by the rank's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/pooling/pooler.h"
#include "engine/models/decoder/model.h"
#include "engine/sample/sampler.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/scheduler_output.h"
#include "engine/worker/encoder_batch.h"
#include "engine/worker/input_batch.h"
#include "engine/worker/logits_buffer.h"
#include "engine/worker/mask_thread.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

class ModelRunner {
 public:
  // `logits_buffer` is the same object on all ranks. `mask_thread` may be null and is borrowed, like `pooler`, which is
  // null except on rank 0. Throws std::bad_alloc.
  ModelRunner(const VllmConfig& config, const StepContext& step, Model& model, LogitsBuffer& logits_buffer,
              MaskThread* mask_thread, const Pooler* pooler);

  // Runs one step. `output` is null except on rank 0, where it receives the results of all ranks.
  void Execute(const SchedulerOutput& scheduler_output, KVCache& cache, ModelRunnerOutput* output);

  // Returns the bytes reserved for the largest allowed step. Most of their pages are untouched until such a step.
  size_t scratch_bytes() const;

 private:
  // A row of the step that needs logits. Either a token is sampled from it, or the logprob of a prompt token is
  // computed.
  struct LogitsRow {
    size_t entry = 0;            // the index of its BatchEntry
    int64_t row = 0;             // in the step
    int32_t prompt_target = -1;  // the prompt token whose logprob is computed; -1: a token is sampled
    int64_t num_drafts = 0;      // the sampled token follows this many drafts of the entry
  };
  // What decides which tokens may be sampled after a draft. Null if it does not depend on the tokens so far.
  struct DraftState {
    std::unique_ptr<OutputConstraint> constraint;
    std::unique_ptr<ThinkingTracker> thinking;
    int32_t forced_token = -1;  // that the constraint forces; -1: none
  };
  void ReservePlans();
  // Finds the entries whose next token the grammar of the request leaves no choice about. Like MakeDraftStates, called
  // before the mask thread starts, because until it has finished, constraints may only fill masks.
  void FindForcedTokens();
  // Makes the states after the drafts of all entries, and finds out how many drafts of each the grammar allows.
  void MakeDraftStates();
  // What holds after the first num_drafts drafts of an entry.
  OutputConstraint* ConstraintAfter(size_t entry, int64_t num_drafts) const;
  const ThinkingTracker* ThinkingAfter(size_t entry, int64_t num_drafts) const;
  int32_t ForcedTokenAfter(size_t entry, int64_t num_drafts) const;
  // Lets the mask thread compute the masks that sampling will need.
  void StartMasks();
  void CollectLogitsRows();
  // Counts the prompt logprobs of this step as returned. Called after all rows are computed, because the prompt
  // logprobs of a cancelled step are computed again.
  void CountPromptLogprobs();
  void ComputeRows(size_t begin, size_t end);
  // Adds the hidden states of the step to the requests with PoolingParams.
  void Pool();
  // Adds the vector or the scores of the entry to the output, if its text is computed.
  void FillPooled(size_t entry, ModelRunnerOutput& output) const;
  // Returns true if the entry needs the logits of its last row for a score.
  bool NeedsScoreLogits(const BatchEntry& entry) const;
  void SampleRow(size_t index, int thread, float* logits_row);
  // Appends the sampled tokens of an entry to those of the step, and sets its last logprobs_index. `next` is the index
  // of the entry's first row that samples, and becomes that of the next entry's first row. Returns the error of the
  // first row, or null. A later error is left to the next step, which computes its row again.
  const std::string* AppendSampled(size_t entry, size_t& next, ModelRunnerOutput& output);
  // Appends the forced tokens of an entry to the tokens of the step, of which those from `first` are the entry's.
  void AppendForced(size_t entry, std::vector<int32_t>& sampled, size_t first) const;
  void FillOutput(ModelRunnerOutput& output);

  const VllmConfig& config_;
  const StepContext& step_;
  Model& model_;
  LogitsBuffer& logits_buffer_;
  MaskThread* const mask_thread_;
  const Pooler* const pooler_;
  InputBatch batch_;
  std::optional<EncoderBatch> encoder_batch_;  // if the attention of the model is not causal
  kernels::AlignedBuffer hidden_;              // [max_num_batched_tokens, hidden_size]
  kernels::AlignedBuffer gathered_;            // [LogitsBuffer::MaxRows, hidden_size]
  std::vector<LogitsRow> logits_rows_;
  std::vector<int32_t> lora_slots_;      // of the rows in gathered_
  std::vector<int32_t> forced_tokens_;   // [num_entries]; -1: none, or nothing is sampled
  std::vector<int64_t> allowed_drafts_;  // [num_entries]; the drafts that the grammar allows
  std::vector<size_t> draft_offsets_;    // [num_entries], of the entry's states in draft_states_
  std::vector<DraftState> draft_states_;
  std::vector<OutputConstraint*> missing_masks_;
  std::vector<Sampler> samplers_;       // [num_threads]
  std::vector<TokenBitmask> bitmasks_;  // [num_threads], scratch
  size_t model_scratch_bytes_ = 0;
};

}  // namespace vllm
