// RecurrentSequence: one request's rows of a step, as layers with recurrent state see them. The rank's ModelRunner
// fills them once per step for all layers. Used on the rank's thread.
//
// A state belongs to a number of tokens, and a step moves it to the request's last token that is certain. The state
// must not contain draft tokens, because it cannot be taken back. A layer therefore keeps its inputs of the draft rows
// (DraftInputs). The next step of the request first moves the state over the drafts that were accepted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vllm {

// The inputs of the draft rows of one request's last step. Owned by the rank's InputBatch.
struct DraftInputs {
  int64_t num_rows = 0;
  std::vector<std::vector<float>> layers;  // [num_recurrent_layers][num_rows, width of the layer's inputs]
};

// Saves the state after `position` tokens in other blocks.
struct StateCheckpoint {
  int64_t position = 0;
  const int32_t* block_ids = nullptr;
};

struct RecurrentSequence {
  int64_t first_row = 0;  // rows [first_row, first_row + num_rows) of the step are consecutive tokens
  int64_t num_rows = 0;
  int64_t num_drafts = 0;      // the last rows are drafts
  int64_t first_position = 0;  // of the first row
  // The blocks of the state of the first first_position - num_accepted tokens. Undefined if these are 0 tokens.
  const int32_t* block_ids = nullptr;
  // The drafts of the request's last step, of which the first num_accepted were accepted. Those of this step replace
  // them. Null only if both numbers are 0.
  DraftInputs* drafts = nullptr;
  int64_t num_accepted = 0;
  // By ascending position, each above that of the state and at most that of the first draft.
  std::span<const StateCheckpoint> checkpoints;

  int64_t state_position() const { return first_position - num_accepted; }
  // The number of tokens that the state belongs to after the step.
  int64_t end_position() const { return first_position + num_rows - num_drafts; }
};

// Replaces the sequence's drafts of one layer by those of this step. rows: the layer's inputs of all rows of the step,
// row_stride floats apart, of which the first `width` are kept. `layer`: among those with recurrent state.
void KeepDrafts(const RecurrentSequence& sequence, size_t layer, const float* rows, int64_t row_stride, int64_t width);

}  // namespace vllm
