// CausalConv: a depthwise convolution over the inputs of the last num_taps tokens of a sequence. The inputs of tokens
// before the step are in the window of the recurrent state, or in DraftInputs. Owned by a mixer. Built at load, then
// used by the rank's thread and the threads of its pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/recurrent_sequence.h"

namespace vllm {

// The inputs of the consecutive tokens of one sequence in one layer.
class SequenceInputs {
 public:
  // rows: the inputs of the step's first row, with rows row_stride floats apart. A row of DraftInputs has `width`
  // floats. window: that of the sequence's state, [num_taps - 1, num_channels].
  struct Memory {
    const float* rows = nullptr;
    int64_t row_stride = 0;
    int64_t width = 0;
    const float* window = nullptr;
    int64_t num_taps = 1;
    int64_t num_channels = 0;
  };
  SequenceInputs(const RecurrentSequence& sequence, size_t layer, const Memory& memory);

  // The number of inputs after the state: of accepted drafts, then of the step.
  int64_t num_accepted() const { return num_accepted_; }
  int64_t num_rows() const { return num_accepted_ + num_step_rows_; }
  // Returns row i, or null for a token before the sequence. -(num_taps - 1) <= i < num_rows(). Rows below 0 have only
  // the num_channels inputs of the convolution.
  const float* Row(int64_t i) const;

 private:
  Memory memory_;
  const float* accepted_;
  int64_t num_accepted_, num_step_rows_;
};

class CausalConv {
 public:
  struct Options {
    std::string name;          // of the tensors `name`.weight and `name`.bias
    int64_t total = 0;         // channels of all ranks
    std::vector<Shard> parts;  // the channels of this rank, in the order of its inputs
    int64_t num_taps = 0;
    bool has_bias = false;
    std::optional<kernels::Activation> activation;  // of the outputs
  };
  // Throws ModelError if a tensor is missing or cannot be used.
  CausalConv(const LoadContext& load, const Options& options);

  int64_t num_channels() const { return num_channels_; }
  int64_t num_taps() const { return num_taps_; }
  int64_t window_floats() const { return (num_taps_ - 1) * num_channels_; }

  // Computes channels [first, first + count) of row i. out: [count].
  void Row(const StepContext& step, const SequenceInputs& inputs, int64_t i, int64_t first, int64_t count,
           float* out) const;
  // Writes the window after row i - 1 to `window`, which may be that of `inputs`.
  void SaveWindow(const SequenceInputs& inputs, int64_t i, float* window) const;
  // `layer`: among those with recurrent state. Saves the windows of the checkpoints, then that of the state.
  void SaveWindows(const RecurrentSequence& sequence, size_t layer, const SequenceInputs& inputs, KVCache& cache) const;

 private:
  int64_t num_channels_ = 0, num_taps_;
  std::optional<kernels::Activation> activation_;
  std::vector<float> weight_;  // [num_taps, num_channels]
  std::vector<float> bias_;    // [num_channels], or empty
};

}  // namespace vllm
