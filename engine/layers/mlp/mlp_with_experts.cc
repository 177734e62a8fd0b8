#include "engine/layers/mlp/mlp_with_experts.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

MlpWithExperts::MlpWithExperts(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                               const std::string& mlp_prefix, const MlpSpec& mlp, const MlpWithExpertsSpec& spec)
    : step_(load.step),
      hidden_size_(model.hidden_size),
      mlp_(load, model, mlp_prefix, mlp),
      moe_(load, model, prefix, spec.moe),
      mlp_out_norm_(load, prefix + spec.mlp_out_norm, model.hidden_size, spec.norm),
      moe_in_norm_(load, prefix + spec.moe_in_norm, model.hidden_size, spec.norm),
      moe_out_norm_(load, prefix + spec.moe_out_norm, model.hidden_size, spec.norm) {}

int64_t MlpWithExperts::scratch_floats(int64_t num_rows) const {
  return 2 * num_rows * hidden_size_ + std::max(mlp_.scratch_floats(num_rows), moe_.scratch_floats(num_rows));
}

void MlpWithExperts::Reserve(int64_t max_rows) const {
  mlp_.Reserve(max_rows);
  moe_.Reserve(max_rows);
}

void MlpWithExperts::Forward(const float* x, const float* hidden, int64_t num_rows, float* scratch, float* out,
                             const int32_t* lora_slots) {
  float* normed = scratch;
  float* expert_out = normed + num_rows * hidden_size_;
  float* inner = expert_out + num_rows * hidden_size_;
  mlp_.Forward(x, num_rows, inner, out, lora_slots);
  moe_in_norm_.Forward(hidden, num_rows, normed);
  moe_.Forward(normed, hidden, num_rows, inner, expert_out, lora_slots);
  ForEachRow(step_, num_rows, 2 * hidden_size_, [&](int64_t row) {
    float* sum = out + row * hidden_size_;
    float* y = expert_out + row * hidden_size_;
    mlp_out_norm_.Row(sum, sum);
    moe_out_norm_.Row(y, y);
    step_.kernels->add(sum, y, hidden_size_);
  });
}

}  // namespace vllm
