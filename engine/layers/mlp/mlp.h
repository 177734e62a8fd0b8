// Mlp: the two-matrix block of a decoder layer: down(act(up x)), or gated: down(act(gate x) * (up x)). Intermediate
// columns are split over the ranks. Made at load, then used by the rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "kernels/activation.h"

namespace vllm {

// Tensor names follow the block's prefix.
struct MlpSpec {
  std::string gate_proj = "gate_proj";  // empty: not gated
  std::string up_proj = "up_proj";
  std::string gate_up_proj;  // where it is set: gate's rows and then up's in one matrix
  std::string down_proj = "down_proj";
  bool has_bias = false;
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
};

// transformers' name of an activation ("silu", "gelu_pytorch_tanh"). Throws ModelError naming it and the known ones.
Activation ActivationByName(const ModelConfig& model);

class Mlp {
 public:
  // Without `reduce` the output is the rank's partial sum and `has_bias` must be false.
  Mlp(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MlpSpec& spec,
      bool reduce = true);

  // Rows pass in parts, so that many take no more scratch than kRowsAtOnce do.
  int64_t scratch_floats(int64_t num_rows) const { return std::min(num_rows, kRowsAtOnce) * up_.out_features(); }
  void Reserve(int64_t max_rows) const {
    up_.Reserve(std::min(max_rows, kRowsAtOnce));
    down_.Reserve(std::min(max_rows, kRowsAtOnce));
  }
  // x, out: [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)].
  void Forward(const float* x, int64_t num_rows, float* scratch, float* out) const;

 private:
  // Enough that reading the weights again for the next ones costs nothing beside the arithmetic.
  static constexpr int64_t kRowsAtOnce = 256;

  void ForwardRows(const float* x, int64_t num_rows, float* scratch, float* out) const;

  const StepContext& step_;
  bool gated_;
  Activation activation_;
  int64_t hidden_size_;
  Shard shard_;
  ColumnParallelLinear up_;  // gate and up where gated
  RowParallelLinear down_;
};

}  // namespace vllm
