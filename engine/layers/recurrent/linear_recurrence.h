// RunLinearRecurrence: the recurrence of linear attention (kernels/recurrent.h) over the tokens of one sequence, for
// heads that share queries and keys: moves their states, writes the checkpoints, and computes the outputs of the step's
// rows. Called from the threads of a rank's pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/layers/attention/attention.h"
#include "engine/layers/recurrent/recurrent_sequence.h"
#include "engine/layers/step_context.h"

namespace vllm {

// The rows that are processed at a time. Their queries, keys and values stay in L2.
inline constexpr int64_t kRecurrenceRows = 64;

struct LinearRecurrenceHeads {
  size_t layer = 0;                // among the layers with recurrent state
  std::span<const int64_t> heads;  // indices of the states in the layer
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  bool delta_rule = false;
  const float* skips = nullptr;  // factors of the values in the outputs, by index of the state; null: 0

  // Returns the size of the scratch of RunLinearRecurrence for `count` heads, in floats.
  static size_t ScratchFloats(int64_t key_dim, int64_t value_dim, int64_t count) {
    return static_cast<size_t>(kRecurrenceRows * (2 * key_dim + count * (value_dim + 2)) + count * key_dim * value_dim);
  }
};

// The inputs of one row, to be filled. Those of head h are value[h * value_step], decay[h * gate_step] and
// beta[h * gate_step].
struct LinearRecurrenceRow {
  float* query = nullptr;  // [key_dim]
  float* key = nullptr;    // [key_dim]
  float* value = nullptr;  // [value_dim] for each head
  int64_t value_step = 0;
  float* decay = nullptr;
  float* beta = nullptr;
  int64_t gate_step = 0;
};

// Calls prepare(i, row) to fill the inputs of row i, counted from the state's position. Writes the output of head h for
// row r of the step to out[r * out_stride + heads[h] * value_dim].
template <typename Prepare>
void RunLinearRecurrence(const StepContext& step, const RecurrentSequence& sequence, KVCache& cache,
                         const LinearRecurrenceHeads& heads, float* scratch, float* out, int64_t out_stride,
                         const Prepare& prepare) {
  const int64_t key_dim = heads.key_dim, value_dim = heads.value_dim;
  const auto num_heads = static_cast<int64_t>(heads.heads.size());
  const auto state_bytes = static_cast<size_t>(key_dim * value_dim) * sizeof(float);
  float* const queries = scratch;
  float* const keys = queries + kRecurrenceRows * key_dim;
  float* const values = keys + kRecurrenceRows * key_dim;  // [num_heads, kRecurrenceRows, value_dim]
  float* const decays = values + num_heads * kRecurrenceRows * value_dim;
  float* const betas = decays + num_heads * kRecurrenceRows;
  float* const draft_states = betas + num_heads * kRecurrenceRows;  // [num_heads, key_dim, value_dim]
  const auto state_of = [&](int64_t head, const int32_t* block_ids) {
    return cache.state(heads.layer, head, block_ids);
  };

  if (sequence.state_position() == 0) {
    for (const int64_t head : heads.heads) std::memset(state_of(head, sequence.block_ids), 0, state_bytes);
  }
  const int64_t num_rows = sequence.num_accepted + sequence.num_rows;
  const int64_t num_certain = sequence.end_position() - sequence.state_position();
  auto checkpoint = sequence.checkpoints.begin();
  for (int64_t begin = 0; begin < num_rows;) {
    // A run of rows ends where the outputs, the drafts or a checkpoint begin.
    int64_t end = std::min(begin + kRecurrenceRows, num_rows);
    if (begin < sequence.num_accepted) end = std::min(end, sequence.num_accepted);
    if (begin < num_certain) end = std::min(end, num_certain);
    if (checkpoint != sequence.checkpoints.end()) {
      end = std::min(end, checkpoint->position - sequence.state_position());
    }
    for (int64_t i = 0; i < end - begin; ++i) {
      prepare(begin + i, LinearRecurrenceRow{.query = queries + i * key_dim,
                                             .key = keys + i * key_dim,
                                             .value = values + i * value_dim,
                                             .value_step = kRecurrenceRows * value_dim,
                                             .decay = decays + i,
                                             .beta = betas + i,
                                             .gate_step = kRecurrenceRows});
    }
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = heads.heads[static_cast<size_t>(h)];
      float* state = state_of(head, sequence.block_ids);
      if (begin >= num_certain) {
        float* const draft_state = draft_states + h * key_dim * value_dim;
        if (begin == num_certain) std::memcpy(draft_state, state, state_bytes);
        state = draft_state;
      }
      // The outputs of accepted drafts were computed in the last step.
      const bool has_output = begin >= sequence.num_accepted;
      const int64_t row = sequence.first_row + begin - sequence.num_accepted;
      step.kernels->recurrent->linear_recurrence(
          {.num_rows = end - begin,
           .key_dim = key_dim,
           .value_dim = value_dim,
           .query = queries,
           .key = keys,
           .key_stride = key_dim,
           .value = values + h * kRecurrenceRows * value_dim,
           .value_stride = value_dim,
           .decay = decays + h * kRecurrenceRows,
           .beta = betas + h * kRecurrenceRows,
           .gate_stride = 1,
           .state = state,
           .out = has_output ? out + row * out_stride + head * value_dim : nullptr,
           .out_stride = out_stride,
           .delta_rule = heads.delta_rule,
           .skip = heads.skips == nullptr ? 0.0f : heads.skips[head]});
    }
    if (checkpoint != sequence.checkpoints.end() && end == checkpoint->position - sequence.state_position()) {
      for (const int64_t head : heads.heads) {
        std::memcpy(state_of(head, checkpoint->block_ids), state_of(head, sequence.block_ids), state_bytes);
      }
      ++checkpoint;
    }
    begin = end;
  }
}

}  // namespace vllm
