// MlpWithExperts: an MLP and a mixture of experts that read the same hidden states (Gemma 4). Each has its own norms,
// and their outputs are added. Owned by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/layers/load_context.h"
#include "engine/layers/mlp/mlp.h"
#include "engine/layers/mlp/sparse_moe.h"
#include "engine/layers/norm.h"

namespace vllm {

// Tensor names are relative to the layer's prefix.
struct MlpWithExpertsSpec {
  MoeSpec moe;
  NormSpec norm;
  std::string mlp_out_norm = "post_feedforward_layernorm_1";
  std::string moe_in_norm = "pre_feedforward_layernorm_2";
  std::string moe_out_norm = "post_feedforward_layernorm_2";
};

class MlpWithExperts {
 public:
  // The names of the MLP's tensors start with `mlp_prefix`, those of the experts and norms with `prefix`.
  MlpWithExperts(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                 const std::string& mlp_prefix, const MlpSpec& mlp, const MlpWithExpertsSpec& spec);

  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_rows) const;
  // Reserves the rank's scratch for Forward with up to `max_rows` rows.
  void Reserve(int64_t max_rows) const;
  // out = mlp_out_norm(mlp(x)) + moe_out_norm(experts(moe_in_norm(hidden))). The router reads hidden. All are
  // [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)]; lora_slots: [num_rows] or null.
  void Forward(const float* x, const float* hidden, int64_t num_rows, float* scratch, float* out,
               const int32_t* lora_slots);

 private:
  const StepContext& step_;
  int64_t hidden_size_;
  Mlp mlp_;
  SparseMoe moe_;
  Norm mlp_out_norm_, moe_in_norm_, moe_out_norm_;
};

}  // namespace vllm
