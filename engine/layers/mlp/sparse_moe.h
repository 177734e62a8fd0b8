// SparseMoe: a mixture of experts (arXiv 1701.06538). Each row goes through its few best experts, whose outputs are
// added with the router's weights. Some families add an expert that all rows share. Every expert is split over the
// ranks like an Mlp. A row's experts are added in ascending order, so its result does not depend on the other rows.
// Made at load, then used by the rank's thread.
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

// Tensor names are relative to the block's prefix. Those of expert 0 start with `experts` and "0.".
struct MoeSpec {
  std::string router = "gate";
  std::string experts = "experts.";
  MlpSpec expert;
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  bool norm_topk_prob = false;           // scale the chosen weights to sum to 1
  std::optional<MlpSpec> shared_expert;  // weighted by sigmoid(`shared_expert_gate` x)
  std::string shared_expert_prefix = "shared_expert.";
  std::string shared_expert_gate = "shared_expert_gate";
};

class SparseMoe {
 public:
  SparseMoe(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MoeSpec& spec);

  int64_t scratch_floats(int64_t num_rows) const;
  void Reserve(int64_t max_rows) const;
  // x, out: [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)].
  void Forward(const float* x, int64_t num_rows, float* scratch, float* out);

 private:
  void Route(const float* router_logits, int64_t num_rows);
  void ChooseExperts(const float* logits);
  void AddExpert(const Mlp& expert, std::span<const RoutedRow> rows, const float* x, float* scratch, float* out);

  const StepContext& step_;
  MoeSpec spec_;
  int64_t hidden_size_;
  ColumnParallelLinear router_;  // replicated on every rank
  std::vector<std::unique_ptr<Mlp>> experts_;
  std::unique_ptr<Mlp> shared_expert_;
  std::unique_ptr<ColumnParallelLinear> shared_expert_gate_;
};

}  // namespace vllm
