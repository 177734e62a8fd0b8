// SparseMoe: a mixture of experts (arXiv 1701.06538). The router chooses a few experts for each row and weights their
// outputs, which are added. Some families have an additional expert that all rows share. Every expert is an Mlp, split
// over the ranks. The outputs of a row's experts are added in ascending order of expert index, so the result does not
// depend on the other rows. Owned by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/mlp/mlp.h"

namespace vllm {

// Tensor names are relative to the block's prefix. The names of expert i's tensors start with `experts`, then "<i>.".
struct MoeSpec {
  std::string router = "gate";
  std::string experts = "experts.";
  MlpSpec expert;
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  bool norm_topk_prob = false;           // scale the weights of the chosen experts to sum to 1
  std::optional<MlpSpec> shared_expert;  // its output is multiplied by sigmoid(shared_expert_gate x)
  std::string shared_expert_prefix = "shared_expert.";
  std::string shared_expert_gate = "shared_expert_gate";
  // The matrices of all experts may be stacked; see model_loader/expert_stack.h.
  bool may_be_stacked = false;
  // If set, the router reads rms_norm(x) * router_scale / sqrt(hidden_size) instead of x.
  std::string router_scale;
  double router_norm_eps = 1e-6;
  std::string expert_scale;  // if set, the weight of expert i is multiplied by element i of this tensor
};

class SparseMoe {
 public:
  SparseMoe(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MoeSpec& spec);

  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_rows) const;
  // Reserves the rank's scratch for Forward with up to `max_rows` rows.
  void Reserve(int64_t max_rows) const;
  // x, out: [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)]; lora_slots: [num_rows] or null.
  void Forward(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) {
    Forward(x, x, num_rows, scratch, out, lora_slots);
  }
  // The router reads router_x, [num_rows, hidden_size], and the experts read x.
  void Forward(const float* x, const float* router_x, int64_t num_rows, float* scratch, float* out,
               const int32_t* lora_slots);

 private:
  // Reads the weights of experts [0, num_experts).
  void LoadExperts(const LoadContext& load, const ModelConfig& model, const std::string& prefix);
  void Route(const float* router_logits, int64_t num_rows);
  void ChooseExperts(const float* logits);
  void AddExpert(const Mlp& expert, std::span<const RoutedRow> rows, const float* x, float* scratch, float* out,
                 const int32_t* lora_slots);

  const StepContext& step_;
  MoeSpec spec_;
  int64_t hidden_size_;
  ColumnParallelLinear router_;  // replicated on every rank
  // [hidden_size] the weights of the router's norm, and [num_experts]; empty if there are none
  std::vector<float> router_norm_, expert_scale_;
  std::vector<std::unique_ptr<Mlp>> experts_;
  std::unique_ptr<Mlp> shared_expert_;
  std::unique_ptr<ColumnParallelLinear> shared_expert_gate_;
};

}  // namespace vllm
