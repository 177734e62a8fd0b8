#include "engine/layers/mlp/sparse_moe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/layers/for_each_row.h"
#include "engine/layers/linear/calibration_run.h"
#include "engine/layers/mlp/expert_weights.h"
#include "engine/layers/norm.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

// The activations of this many rows of experts take little memory, and an exchange costs little compared with computing
// them.
constexpr int64_t kActivationRows = 512;

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
    experts_.push_back(std::make_unique<Mlp>(expert_load, expert_model, name, spec.expert));
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
  shared_expert_ = std::make_unique<Mlp>(load, model, prefix + spec.shared_expert_prefix, *spec.shared_expert);
  if (spec.shared_expert_gate.empty()) return;
  shared_expert_gate_ = std::make_unique<ColumnParallelLinear>(
      load, RouterModel(model), model.hidden_size,
      std::vector<OutputSlice>{{prefix + spec.shared_expert_gate, 1, {0, 1}}}, false);
}

int64_t SparseMoe::activation_rows(int64_t num_rows) const {
  if (calibration_run_ != nullptr) return num_rows;
  const int64_t num_routed = num_rows * (spec_.routing.num_experts_per_tok + (shared_expert_ ? 1 : 0));
  return std::min(num_routed, std::max(kActivationRows, rows_at_once()));
}

int64_t SparseMoe::activation_stride() const {
  return std::max(experts_[0]->up_floats(), shared_expert_ ? shared_expert_->up_floats() : 0);
}

int64_t SparseMoe::scratch_floats(int64_t num_rows) const {
  // RunExperts needs the activations of several experts, and the inputs and outputs of one. Before that, the same
  // memory holds the router's logits and its normalized input.
  const int64_t width = std::max(hidden_size_, expert_width_);
  const int64_t experts =
      activation_rows(num_rows) * activation_stride() + 2 * std::min(num_rows, rows_at_once()) * width;
  const int64_t latent = latent_in_ ? num_rows * (2 * expert_width_ + hidden_size_) : 0;
  return latent + std::max(experts, num_rows * (spec_.routing.num_experts + (router_norm_.empty() ? 0 : hidden_size_)));
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
                               static_cast<size_t>(spec_.routing.num_experts_per_tok),
                               static_cast<size_t>(std::min(rows_at_once(), max_rows)));
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
  if (shared_expert_) RouteToShared(x, num_rows, scratch, lora_slots);
  if (!latent_in_) {
    ListExpertRows(true, shared_expert_ != nullptr);
    RunExperts({num_rows, hidden_size_, x, out, lora_slots, scratch});
    AddOutputBias(num_rows, out);
    return;
  }
  float* const latent = scratch;  // [num_rows, expert_width_]
  float* const sum = latent + num_rows * expert_width_;
  float* const routed = sum + num_rows * expert_width_;  // [num_rows, hidden_size]
  float* const inner = routed + num_rows * hidden_size_;
  latent_in_->Forward(x, hidden_size_, num_rows, latent, expert_width_, lora_slots);
  ListExpertRows(true, false);
  RunExperts({num_rows, expert_width_, latent, sum, lora_slots, inner});
  ListExpertRows(false, shared_expert_ != nullptr);
  RunExperts({num_rows, hidden_size_, x, out, lora_slots, inner});
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

void SparseMoe::RouteToShared(const float* x, int64_t num_rows, float* scratch, const int32_t* lora_slots) {
  if (shared_expert_gate_) shared_expert_gate_->Forward(x, hidden_size_, num_rows, scratch, 1, lora_slots);
  for (int64_t row = 0; row < num_rows; ++row) {
    const float weight = shared_expert_gate_ ? 1.0f / (1.0f + std::exp(-scratch[row])) : 1.0f;
    step_.workspace->moe.routed.push_back({row, weight});
  }
}

void SparseMoe::ListExpertRows(bool routed, bool shared) {
  MoeWorkspace& workspace = step_.workspace->moe;
  workspace.expert_rows.clear();
  const auto rows_per_piece = static_cast<size_t>(rows_at_once());
  const auto append = [&](size_t expert, size_t begin, size_t end) {
    for (; begin < end; begin += rows_per_piece) {
      workspace.expert_rows.push_back({expert, begin, std::min(end, begin + rows_per_piece)});
    }
  };
  for (size_t i = 0; routed && i < experts_.size(); ++i) append(i, workspace.begin[i], workspace.begin[i + 1]);
  if (shared) append(experts_.size(), workspace.begin.back(), workspace.routed.size());
}

void SparseMoe::RunExperts(const Run& run) {
  MoeWorkspace& workspace = step_.workspace->moe;
  if (run.lora_slots != nullptr) {
    workspace.lora_slots.clear();
    for (const RoutedRow& routed : workspace.routed) workspace.lora_slots.push_back(run.lora_slots[routed.row]);
  }
  const Shard own = ShardOfRows(run.width, step_.rank(), step_.world_size());
  for (int64_t row = 0; row < run.num_rows; ++row) std::fill_n(run.out + row * run.width + own.begin, own.count, 0.0f);
  const std::vector<ExpertRows>& all = workspace.expert_rows;
  const auto max_rows = static_cast<size_t>(activation_rows(run.num_rows));
  float* const activations = run.scratch;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    for (end = begin + 1; end < all.size() && all[end].end - all[begin].begin <= max_rows; ++end) {
      if (calibration_run_ != nullptr) break;  // it needs one expert at a time
    }
    RunUp(run, begin, end, activations);
    const std::span<const PeerBuffers> peers =
        step_.communicator->Exchange({.in = activations, .in_stride = activation_stride(), .out = run.out});
    RunDown(run, begin, end, peers);
    if (end == all.size()) SendColumns(step_, peers, {&own, 1}, run.num_rows, run.width);
    step_.communicator->Barrier();
  }
}

void SparseMoe::RunUp(const Run& run, size_t begin, size_t end, float* activations) {
  const MoeWorkspace& workspace = step_.workspace->moe;
  const std::vector<ExpertRows>& all = workspace.expert_rows;
  float* const gathered = run.scratch + activation_rows(run.num_rows) * activation_stride();
  for (size_t i = begin; i < end; ++i) {
    const auto rows = std::span(workspace.routed).subspan(all[i].begin, all[i].end - all[i].begin);
    for (size_t k = 0; k < rows.size(); ++k) {
      std::copy_n(run.x + rows[k].row * run.width, run.width, gathered + static_cast<int64_t>(k) * run.width);
    }
    if (calibration_run_ != nullptr) calibration_run_->SetRows(rows);
    Expert(all[i].expert)
        .ForwardUp(gathered, std::ssize(rows),
                   activations + static_cast<int64_t>(all[i].begin - all[begin].begin) * activation_stride(),
                   activation_stride(),
                   run.lora_slots == nullptr ? nullptr : workspace.lora_slots.data() + all[i].begin);
  }
}

void SparseMoe::RunDown(const Run& run, size_t begin, size_t end, std::span<const PeerBuffers> peers) {
  const MoeWorkspace& workspace = step_.workspace->moe;
  const std::vector<ExpertRows>& all = workspace.expert_rows;
  float* const result = run.scratch + activation_rows(run.num_rows) * activation_stride();
  for (size_t i = begin; i < end; ++i) {
    const auto rows = std::span(workspace.routed).subspan(all[i].begin, all[i].end - all[i].begin);
    const Mlp& expert = Expert(all[i].expert);
    const GatheredRows activations = GatherColumns(
        step_, peers, expert.down_columns(), static_cast<int64_t>(all[i].begin - all[begin].begin), std::ssize(rows));
    expert.ForwardDown(activations, std::ssize(rows), result,
                       run.lora_slots == nullptr ? nullptr : workspace.lora_slots.data() + all[i].begin);
    const Shard& own = expert.out_columns();
    ForEachRow(step_, std::ssize(rows), own.count, [&](int64_t k) {
      const RoutedRow& routed = rows[static_cast<size_t>(k)];
      step_.kernels->add_scaled(run.out + routed.row * run.width + own.begin, result + k * own.count, routed.weight,
                                own.count);
    });
  }
  if (calibration_run_ != nullptr) calibration_run_->SetAllRows();
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

}  // namespace vllm
