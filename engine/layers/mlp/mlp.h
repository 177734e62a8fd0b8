// Mlp: the feed-forward block of a decoder layer. It computes down(act(up x)), or down(act(gate x) * (up x)) if gated.
// The intermediate columns and the outputs are split over the ranks. Owned by a DecoderLayer or a SparseMoe. Built at
// load, then used by the rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layers/column_gather.h"
#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "kernels/activation.h"

namespace vllm {

// The activation of gpt-oss's experts; see Kernels::clamped_swiglu.
struct ClampedSwiglu {
  double alpha = 1.702;
  double limit = 7.0;
};

// Tensor names are relative to the block's prefix.
struct MlpSpec {
  std::string gate_proj = "gate_proj";  // empty: not gated, unless gate_up_proj is set
  std::string up_proj = "up_proj";
  std::string gate_up_proj;  // if set, used instead: one matrix with the rows of gate, then those of up
  std::string down_proj = "down_proj";
  bool up_comes_first = false;  // gate_up_proj has the rows of up, then those of gate
  bool has_bias = false;
  bool has_down_bias = false;  // down_proj has a bias even without has_bias
  int64_t intermediate_size = 0;
  kernels::Activation activation = kernels::Activation::kSilu;
  std::optional<ClampedSwiglu> clamped_swiglu;  // replaces `activation`. REQUIRES: gated
  // Gemma 3n: before the activation, the gate becomes max(0, gate - (mean + gate_cutoff * standard deviation)) of the
  // whole row.
  std::optional<double> gate_cutoff;
  double gate_scale = 1.0;  // multiplies the gate before the activation. REQUIRES: gated
  double down_scale = 1.0;  // multiplies the output
};

// Returns the activation that model.hidden_act names. The names are those of transformers, such as "silu" and
// "gelu_pytorch_tanh". Throws ModelError if the name is unknown.
kernels::Activation ActivationByName(const ModelConfig& model);

class Mlp {
 public:
  Mlp(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MlpSpec& spec);

  // Number of floats in the scratch of Forward. Forward limits it by processing at most rows_at_once_ rows at a time.
  int64_t scratch_floats(int64_t num_rows) const {
    return std::min(num_rows, rows_at_once_) * (up_.out_features() + (gate_cutoff_ ? 2 : 0));
  }
  void Reserve(int64_t max_rows) const {
    const int64_t num_rows = std::min(max_rows, rows_at_once_);
    if (gate_cutoff_) ReserveGather(step_, num_rows, intermediate_size_);
    up_.Reserve(num_rows);
    up_.ReserveRuns(num_rows, num_up_slices());
    down_.PackedX(num_rows, nullptr, step_.workspace->packed_intermediate);
    down_.Reserve(num_rows);
  }
  // x, out: [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)]; lora_slots: [num_rows] or null.
  void Forward(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) const;

  // The two halves of Forward, for experts. At most rows_at_once() rows fit the reserved scratch.
  int64_t rows_at_once() const { return rows_at_once_; }
  // Number of floats that ForwardUp writes per row.
  int64_t up_floats() const { return up_.out_features(); }
  // Writes the rank's intermediate activations, [num_rows, down_columns() of the rank], to y, which has rows y_stride
  // floats apart and up_floats() each. With gate_cutoff, y is followed by scratch of 2 * num_rows floats.
  void ForwardUp(const float* x, int64_t num_rows, float* y, int64_t y_stride, const int32_t* lora_slots) const;
  // The intermediate columns of each rank.
  const std::vector<Shard>& down_columns() const { return down_.in_columns(); }
  // The outputs of this rank.
  const Shard& out_columns() const { return down_.out_columns(); }
  // Computes the rank's outputs, y [num_rows, out_columns().count], from the activations of all ranks.
  void ForwardDown(const GatheredRows& activations, int64_t num_rows, float* y, const int32_t* lora_slots) const;

 private:
  int64_t num_up_slices() const { return gated_ ? 2 : 1; }
  // Applies the activation to `count` columns of a row. Changes `gate`, which may be `out`.
  void Activate(float* gate, const float* up, int64_t count, float* out) const;
  // Applies gate_cutoff. gate: [num_rows, stride], of which this rank has shard_.count columns; sums: scratch of [2,
  // num_rows].
  void CutOff(int64_t num_rows, int64_t stride, float* gate, float* sums) const;
  // Like ForwardRows without down_scale, but packs the activations of each run instead of writing them to memory.
  // Returns false, without computing anything, if that is not possible.
  bool ForwardInRuns(const float* x, int64_t num_rows, float* out, const int32_t* lora_slots) const;
  void ForwardRows(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) const;

  const StepContext& step_;
  bool gated_;
  kernels::Activation activation_;
  std::optional<ClampedSwiglu> clamped_swiglu_;
  std::optional<double> gate_cutoff_;
  float gate_scale_, down_scale_;
  int64_t intermediate_size_;
  int64_t hidden_size_;
  Shard shard_;
  int64_t rows_at_once_;
  ColumnParallelLinear up_;  // gate and up if gated
  GatheredLinear down_;
};

}  // namespace vllm
