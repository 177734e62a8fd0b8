// InputBatch: a rank's copy of the requests, updated by each step's SchedulerOutput, and the step's rows in the form
// that the model reads. Owned by the ModelRunner; used by the rank's thread only. Allocates only when requests are
// added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/layers/recurrent/recurrent_sequence.h"
#include "engine/sched/scheduler_output.h"
#include "engine/worker/request_state.h"

namespace vllm {

// One scheduled request and its rows in the step.
struct BatchEntry {
  CachedRequestState* state = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t first_position() const { return state->num_computed_tokens; }
  int64_t num_drafts() const { return state->num_drafts; }
  // Returns the row of the request's last token, followed by the rows of its drafts. REQUIRES: samples().
  int64_t first_sampled_row() const { return first_row + num_rows - 1 - num_drafts(); }
  // Tokens are sampled only if the entry's last row is that of the request's last known token or draft.
  bool samples() const { return first_position() + num_rows == static_cast<int64_t>(state->token_ids.size()); }
};

class InputBatch {
 public:
  // A step has at most `max_num_tokens` rows. A request has at most `max_model_len` tokens, and one block table for
  // each of the `num_groups` KV-cache groups.
  InputBatch(int64_t max_num_tokens, int64_t max_model_len, int64_t block_size, size_t num_groups);

  // Updates the requests and lays out the step's rows. Throws std::logic_error if `scheduler_output` contradicts the
  // rank's state.
  void Update(const SchedulerOutput& scheduler_output);

  const std::vector<BatchEntry>& entries() const { return entries_; }
  std::span<const int32_t> token_ids() const { return token_ids_; }
  std::span<const int64_t> positions() const { return positions_; }
  // Returns the adapter of each row as in ModelInput, or null if no row has one.
  const int32_t* lora_slots() const { return has_lora_ ? lora_slots_.data() : nullptr; }
  std::span<const int64_t> token_type_ids() const { return token_type_ids_; }
  // The step's rows and sequences. The caller makes the plans and allocates `partials`.
  AttentionMetadata& attention() { return attention_; }
  const AttentionMetadata& attention() const { return attention_; }
  // The sequences of the step, if the model has recurrent state.
  const std::vector<RecurrentSequence>& recurrent() const { return recurrent_; }
  size_t num_requests() const { return states_.size(); }

 private:
  CachedRequestState& StateOf(RequestId request_id);
  // Appends n blocks to each of the request's block tables. block_ids: [num_groups, n].
  void AddBlocks(std::span<const int32_t> block_ids, CachedRequestState& state) const;
  // Removes the drafts of the last step from the requests.
  void RemoveDrafts();
  // Adds the last entry's sequence. next_checkpoint: the index of the first checkpoint that no entry has taken.
  void AddRecurrentSequence(const SchedulerOutput& scheduler_output, size_t& next_checkpoint);
  void AddRows(const CachedRequestState& state, int64_t first, int64_t last);

  int64_t max_model_len_;
  int64_t block_size_;
  std::unordered_map<RequestId, std::unique_ptr<CachedRequestState>> states_;
  std::vector<BatchEntry> entries_;
  std::vector<int32_t> token_ids_;
  std::vector<int64_t> positions_;
  std::vector<int64_t> token_type_ids_;
  std::vector<int32_t> lora_slots_;  // [num_tokens]
  bool has_lora_ = false;
  AttentionMetadata attention_;
  std::vector<RecurrentSequence> recurrent_;
  std::vector<StateCheckpoint> checkpoints_;  // of all entries
};

}  // namespace vllm
