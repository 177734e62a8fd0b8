// ConvMixer: the parts that the recurrent mixers share: in_proj, a causal convolution over the first columns of its
// output, and out_proj. Built at load, then used by the rank's thread and the threads of its pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/linear/linear_rows.h"
#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/causal_conv.h"
#include "engine/layers/recurrent/recurrent_mixer.h"

namespace vllm {

class ConvMixer : public RecurrentMixer {
 public:
  void Reserve(int64_t max_tokens) const final;

 protected:
  struct Options {
    LinearRows in_proj = {};  // those of the convolution's channels come first
    bool in_bias = false;
    CausalConv::Options conv;
    // The leading columns of in_proj's output that move the state. Later steps need those of accepted drafts.
    int64_t num_inputs = 0;
    std::string out_proj;
    std::vector<Shard> inner;  // the inputs of out_proj on each rank
    bool out_bias = false;
  };
  // `layer`: among the layers with recurrent state. Throws as ColumnParallelLinear and CausalConv do.
  ConvMixer(const LoadContext& load, const ModelConfig& model, size_t layer, const Options& options);

  const StepContext& step() const { return step_; }
  size_t layer() const { return layer_; }
  const CausalConv& conv() const { return conv_; }
  int64_t row_floats() const { return in_proj_.out_features(); }
  int64_t num_inputs() const { return num_inputs_; }
  // Inputs of out_proj on this rank.
  int64_t inner() const { return inner_; }

  // rows: [num_tokens, row_floats()]
  void ProjectIn(const float* x, int64_t num_tokens, float* rows, const int32_t* lora_slots) const {
    in_proj_.Forward(x, hidden_size_, num_tokens, rows, row_floats(), lora_slots);
  }
  // y: [num_tokens, inner()]
  void ProjectOut(const float* y, int64_t num_tokens, float* out, const int32_t* lora_slots) const {
    out_proj_.Forward(y, inner_, num_tokens, out, lora_slots);
  }
  // Returns the inputs of the sequence's tokens. rows: [num_tokens, row_floats()] of the step.
  SequenceInputs Inputs(const RecurrentSequence& sequence, KVCache& cache, const float* rows) const;
  // Calls run(sequence, inputs, part, scratch) on the rank's threads for each of the num_parts parts of every sequence,
  // then saves the inputs. scratch: the thread's RecurrentWorkspace::scratch.
  template <typename Run>
  void RunParts(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* rows, int64_t num_parts,
                const Run& run) const {
    step_.threads->ParallelFor(static_cast<int64_t>(sequences.size()) * num_parts, [&](int64_t task, int thread) {
      const RecurrentSequence& sequence = sequences[static_cast<size_t>(task / num_parts)];
      float* const scratch = step_.workspace->recurrent.scratch[static_cast<size_t>(thread)].data();
      run(sequence, Inputs(sequence, cache, rows), task % num_parts, scratch);
    });
    // The windows and the accepted drafts are inputs of all parts, so they may change only now.
    SaveInputs(sequences, cache, rows);
  }
  // Saves the windows of the convolution and the drafts.
  void SaveInputs(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* rows) const;

 private:
  const StepContext& step_;
  size_t layer_;
  int64_t hidden_size_;
  int64_t num_inputs_, inner_;
  ColumnParallelLinear in_proj_;
  CausalConv conv_;
  GatheredLinear out_proj_;
};

}  // namespace vllm
