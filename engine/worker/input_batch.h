// InputBatch: a rank's copy of the requests it knows, kept up to date by each step's difference, and that step's rows
// flattened for the model. Used by the rank's thread only; allocates only when requests come or go.
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

// One scheduled request in the step's rows.
struct BatchEntry {
  CachedRequestState* state = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t first_position() const { return state->num_computed_tokens; }
  // The last row's logits give a new token only when the row is the last known token.
  bool samples() const { return first_position() + num_rows == static_cast<int64_t>(state->token_ids.size()); }
};

class InputBatch {
 public:
  // `max_num_tokens` rows a step; block tables, one a KV-cache group, and tokens hold `max_model_len`.
  InputBatch(int64_t max_num_tokens, int64_t max_model_len, int64_t block_size, size_t num_groups);

  // Applies the step's difference and lays out its rows. Throws std::logic_error when the difference does not fit what
  // this rank knows.
  void Update(const SchedulerOutput& scheduler_output);

  const std::vector<BatchEntry>& entries() const { return entries_; }
  std::span<const int32_t> token_ids() const { return token_ids_; }
  std::span<const int64_t> positions() const { return positions_; }
  // The rows' sequences; the plans are the caller's to make.
  AttentionMetadata& attention() { return attention_; }
  const AttentionMetadata& attention() const { return attention_; }
  size_t num_requests() const { return states_.size(); }

 private:
  CachedRequestState& StateOf(RequestId request_id);
  // block_ids [num_groups, n]: n more blocks in each table.
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
