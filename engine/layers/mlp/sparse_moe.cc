#include "engine/layers/mlp/sparse_moe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/layers/for_each_row.h"
#include "engine/layers/linear/calibration_run.h"
#include "engine/layers/mlp/expert_weights.h"
#include "engine/layers/norm.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

// --quantization does not quantize routers, because they are small and a quantized router could choose other experts.
ModelConfig RouterModel(ModelConfig model) {
  if (model.quantization.quantizes_at_load()) model.quantization = {};
  return model;
}

// The tensor may have a leading dimension of 1. GGUF files append ".bias" to its name.
std::vector<float> LoadCorrectionBias(const LoadContext& load, const std::string& prefix, const MoeSpec& spec) {
  const int64_t count = spec.routing.num_experts;
  std::string name = prefix + spec.correction_bias;
  if (!load.weights.Contains(name)) name += ".bias";
  const std::optional<std::vector<int64_t>> shape = load.weights.ShapeOf(name);
  if (!shape || shape->size() != 2) return LoadFloats(load.weights, name, count, {0, count});
  const TensorView view = load.weights.Get(name, std::array<int64_t, 2>{1, count});
  std::vector<float> bias(static_cast<size_t>(count));
  kernels::ConvertToFloat(view.data.data(), view.dtype(), count, bias.data());
  return bias;
}

}  // namespace

SparseMoe::SparseMoe(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MoeSpec& spec)
    : step_(load.step),
      calibration_run_(load.calibration_run),
      spec_(spec),
      hidden_size_(model.hidden_size),
      expert_width_(spec.latent_size > 0 ? spec.latent_size : model.hidden_size),
      router_(load, RouterModel(model), model.hidden_size,
              {{prefix + spec.router, spec.routing.num_experts, {0, spec.routing.num_experts}}}, spec.router_bias) {
  ModelConfig expert_model = model;
  expert_model.hidden_size = expert_width_;
  for (int64_t i = 0; i < spec.routing.num_experts; ++i) {
    const std::string name = prefix + spec.experts + std::to_string(i) + ".";
    const ExpertWeights weights(load, prefix, spec, expert_width_, i);
    const LoadContext expert_load{load.config, weights,          load.memory,         load.step,
                                  load.lora,   load.calibration, load.calibration_run};
    experts_.push_back(std::make_unique<Mlp>(expert_load, expert_model, name, spec.expert, false));
  }
  if (!spec.router_scale.empty()) {
    router_norm_ = LoadFloats(load.weights, prefix + spec.router_scale, hidden_size_, {0, hidden_size_});
    const auto root = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hidden_size_)));
    for (float& weight : router_norm_) weight *= root;
  }
  if (!spec.expert_scale.empty()) {
    const int64_t count = spec.routing.num_experts;
    expert_scale_ = LoadFloats(load.weights, prefix + spec.expert_scale, count, {0, count});
  }
  if (!spec.correction_bias.empty()) {
    correction_bias_ = LoadCorrectionBias(load, prefix, spec);
  } else if (spec.routing.score == ExpertScore::kSigmoid) {
    correction_bias_.resize(static_cast<size_t>(spec.routing.num_experts));
  }
  const std::string output_bias = prefix + spec.output_bias;
  if (!spec.output_bias.empty() && (!load.weights.DecidesBiases() || load.weights.Contains(output_bias))) {
    output_bias_ = LoadFloats(load.weights, output_bias, hidden_size_, {0, hidden_size_});
  }
  if (spec.latent_size > 0) {
    latent_in_ = std::make_unique<ColumnParallelLinear>(
        load, model, hidden_size_,
        std::vector<OutputSlice>{{prefix + spec.latent_in, spec.latent_size, {0, spec.latent_size}}}, spec.latent_bias);
    latent_out_ = std::make_unique<ColumnParallelLinear>(
        load, model, spec.latent_size,
        std::vector<OutputSlice>{{prefix + spec.latent_out, hidden_size_, {0, hidden_size_}}}, spec.latent_bias);
  }
  if (!spec.shared_expert) return;
  shared_expert_ = std::make_unique<Mlp>(load, model, prefix + spec.shared_expert_prefix, *spec.shared_expert, false);
  if (spec.shared_expert_gate.empty()) return;
  shared_expert_gate_ = std::make_unique<ColumnParallelLinear>(
      load, RouterModel(model), model.hidden_size,
      std::vector<OutputSlice>{{prefix + spec.shared_expert_gate, 1, {0, 1}}}, false);
}

int64_t SparseMoe::scratch_floats(int64_t num_rows) const {
  const int64_t widest = std::max(experts_[0]->scratch_floats(num_rows),
                                  shared_expert_ ? shared_expert_->scratch_floats(num_rows) : int64_t{0});
  // AddExpert needs the gathered rows, the expert's output and its intermediate activations. Before that, the same
  // memory holds the router's logits and its normalized input.
  const int64_t latent = latent_in_ ? num_rows * (2 * expert_width_ + hidden_size_) : 0;
  const int64_t width = std::max(hidden_size_, expert_width_);
  return latent + 2 * num_rows * width + std::max(widest, num_rows * spec_.routing.num_experts);
}

void SparseMoe::Reserve(int64_t max_rows) const {
  router_.Reserve(max_rows);
  if (shared_expert_gate_) shared_expert_gate_->Reserve(max_rows);
  if (shared_expert_) shared_expert_->Reserve(max_rows);
  if (latent_in_) {
    latent_in_->Reserve(max_rows);
    latent_out_->Reserve(max_rows);
  }
  for (const std::unique_ptr<Mlp>& expert : experts_) expert->Reserve(max_rows);
  step_.workspace->moe.Reserve(static_cast<size_t>(max_rows), static_cast<size_t>(spec_.routing.num_experts),
                               static_cast<size_t>(spec_.routing.num_experts_per_tok));
}

void SparseMoe::Forward(const float* x, const float* router_x, int64_t num_rows, float* scratch, float* out,
                        const int32_t* lora_slots) {
  const int64_t num_experts = spec_.routing.num_experts;
  if (!router_norm_.empty()) {
    float* normed = scratch + num_rows * num_experts;
    ForEachRow(step_, num_rows, hidden_size_, [&](int64_t row) {
      step_.kernels->rms_norm(router_x + row * hidden_size_, router_norm_.data(),
                              static_cast<float>(spec_.router_norm_eps), hidden_size_, normed + row * hidden_size_);
    });
    router_x = normed;
  }
  router_.Forward(router_x, hidden_size_, num_rows, scratch, num_experts, lora_slots);
  Route(scratch, num_rows);
  std::memset(out, 0, static_cast<size_t>(num_rows * hidden_size_) * sizeof(float));
  if (!latent_in_) {
    AddRouted(x, scratch, out, lora_slots);
    AddShared(x, num_rows, scratch, out, lora_slots);
    step_.communicator->AllReduce(out, num_rows * hidden_size_);
    AddOutputBias(num_rows, out);
    return;
  }
  float* const latent = scratch;  // [num_rows, expert_width_]
  float* const sum = latent + num_rows * expert_width_;
  float* const routed = sum + num_rows * expert_width_;  // [num_rows, hidden_size]
  float* const inner = routed + num_rows * hidden_size_;
  latent_in_->Forward(x, hidden_size_, num_rows, latent, expert_width_, lora_slots);
  std::memset(sum, 0, static_cast<size_t>(num_rows * expert_width_) * sizeof(float));
  AddRouted(latent, inner, sum, lora_slots);
  AddShared(x, num_rows, inner, out, lora_slots);
  step_.communicator->AllReduce(sum, num_rows * expert_width_);
  step_.communicator->AllReduce(out, num_rows * hidden_size_);
  latent_out_->Forward(sum, expert_width_, num_rows, routed, hidden_size_, lora_slots);
  ForEachRow(step_, num_rows, hidden_size_, [&](int64_t row) {
    step_.kernels->add(out + row * hidden_size_, routed + row * hidden_size_, hidden_size_);
  });
  AddOutputBias(num_rows, out);
}

void SparseMoe::AddOutputBias(int64_t num_rows, float* out) const {
  if (output_bias_.empty()) return;
  ForEachRow(step_, num_rows, hidden_size_,
             [&](int64_t row) { step_.kernels->add(out + row * hidden_size_, output_bias_.data(), hidden_size_); });
}

void SparseMoe::AddRouted(const float* x, float* scratch, float* out, const int32_t* lora_slots) {
  const std::span<const RoutedRow> routed = step_.workspace->moe.routed;
  for (size_t i = 0; i < experts_.size(); ++i) {
    const size_t begin = step_.workspace->moe.begin[i], end = step_.workspace->moe.begin[i + 1];
    if (begin == end) continue;
    AddExpert(*experts_[i], routed.subspan(begin, end - begin), expert_width_, x, scratch, out, lora_slots);
  }
}

void SparseMoe::AddShared(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) {
  if (!shared_expert_) return;
  std::vector<RoutedRow>& routed = step_.workspace->moe.routed;
  if (shared_expert_gate_) shared_expert_gate_->Forward(x, hidden_size_, num_rows, scratch, 1, lora_slots);
  routed.clear();
  for (int64_t row = 0; row < num_rows; ++row) {
    routed.push_back({row, shared_expert_gate_ ? 1.0f / (1.0f + std::exp(-scratch[row])) : 1.0f});
  }
  AddExpert(*shared_expert_, routed, hidden_size_, x, scratch, out, lora_slots);
}

void SparseMoe::Route(const float* router_logits, int64_t num_rows) {
  MoeWorkspace& workspace = step_.workspace->moe;
  workspace.chosen.clear();
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* logits = router_logits + row * spec_.routing.num_experts;
    const size_t first = workspace.chosen.size();
    ChooseExperts(spec_.routing, logits, correction_bias_.empty() ? nullptr : correction_bias_.data(), workspace);
    if (expert_scale_.empty()) continue;
    for (size_t i = first; i < workspace.chosen.size(); ++i) {
      workspace.chosen[i].second *= expert_scale_[static_cast<size_t>(workspace.chosen[i].first)];
    }
  }

  // A counting sort by expert keeps each expert's rows in ascending order.
  std::vector<size_t>& begin = workspace.begin;
  begin.assign(static_cast<size_t>(spec_.routing.num_experts) + 1, 0);
  for (const auto& [expert, weight] : workspace.chosen) ++begin[static_cast<size_t>(expert)];
  size_t sum = 0;
  for (size_t& count : begin) sum += std::exchange(count, sum);
  workspace.routed.resize(workspace.chosen.size());
  for (size_t i = 0; i < workspace.chosen.size(); ++i) {
    const auto& [expert, weight] = workspace.chosen[i];
    const int64_t row = static_cast<int64_t>(i) / spec_.routing.num_experts_per_tok;
    workspace.routed[begin[static_cast<size_t>(expert)]++] = {row, weight};
  }
  // begin[i] has advanced to the end of expert i's rows, where the rows of expert i + 1 begin. Shift the entries by
  // one.
  std::copy_backward(begin.begin(), begin.end() - 1, begin.end());
  begin[0] = 0;
}

void SparseMoe::AddExpert(const Mlp& expert, std::span<const RoutedRow> rows, int64_t width, const float* x,
                          float* scratch, float* out, const int32_t* lora_slots) {
  const auto count = static_cast<int64_t>(rows.size());
  float* gathered = scratch;
  float* result = gathered + count * width;
  float* inner = result + count * width;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(gathered + i * width, x + rows[static_cast<size_t>(i)].row * width,
                static_cast<size_t>(width) * sizeof(float));
  }
  const int32_t* gathered_slots = nullptr;
  if (lora_slots != nullptr) {
    std::vector<int32_t>& slots = step_.workspace->moe.lora_slots;
    slots.clear();
    for (const RoutedRow& routed : rows) slots.push_back(lora_slots[routed.row]);
    gathered_slots = slots.data();
  }
  if (calibration_run_ != nullptr) calibration_run_->SetRows(rows);
  expert.Forward(gathered, count, inner, result, gathered_slots);
  if (calibration_run_ != nullptr) calibration_run_->SetAllRows();
  ForEachRow(step_, count, width, [&](int64_t i) {
    const RoutedRow& routed = rows[static_cast<size_t>(i)];
    step_.kernels->add_scaled(out + routed.row * width, result + i * width, routed.weight, width);
  });
}

}  // namespace vllm
