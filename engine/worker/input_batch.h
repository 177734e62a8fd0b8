// InputBatch: a rank's copy of the running requests, updated by each step's delta, and the step's rows flattened for
// the model. Used by the rank's thread only. Allocates only when requests are added or removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/sched/scheduler_output.h"
#include "engine/worker/request_state.h"

namespace vllm {

// One scheduled request and its rows in the step.
struct BatchEntry {
  CachedRequestState* state = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t first_position() const { return state->num_computed_tokens; }
  // The last row's logits give a new token only if the row is the last known token.
  bool samples() const { return first_position() + num_rows == static_cast<int64_t>(state->token_ids.size()); }
};

class InputBatch {
 public:
  // A step has up to `max_num_tokens` rows. Tokens and block tables (one per KV-cache group) hold `max_model_len`.
  InputBatch(int64_t max_num_tokens, int64_t max_model_len, int64_t block_size, size_t num_groups);

  // Applies the step's delta and lays out its rows. Throws std::logic_error if the delta contradicts the rank's state.
  void Update(const SchedulerOutput& scheduler_output);

  const std::vector<BatchEntry>& entries() const { return entries_; }
  std::span<const int32_t> token_ids() const { return token_ids_; }
  std::span<const int64_t> positions() const { return positions_; }
  // The sequences of the rows. The caller makes the plans.
  AttentionMetadata& attention() { return attention_; }
  const AttentionMetadata& attention() const { return attention_; }
  size_t num_requests() const { return states_.size(); }

 private:
  CachedRequestState& StateOf(RequestId request_id);
  // block_ids: [num_groups, n], n more blocks for each table.
  void AddBlocks(std::span<const int32_t> block_ids, CachedRequestState& state) const;
  void AddRows(const CachedRequestState& state, int64_t first, int64_t last);

  int64_t max_model_len_;
  int64_t block_size_;
  std::unordered_map<RequestId, std::unique_ptr<CachedRequestState>> states_;
  std::vector<BatchEntry> entries_;
  std::vector<int32_t> token_ids_;
  std::vector<int64_t> positions_;
  AttentionMetadata attention_;
};

}  // namespace vllm
