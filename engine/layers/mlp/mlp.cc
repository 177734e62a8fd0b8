#include "engine/layers/mlp/mlp.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_activations.h"

namespace vllm {

namespace {

constexpr std::array<std::pair<std::string_view, kernels::Activation>, 10> kActivations = {{
    {"silu", kernels::Activation::kSilu},
    {"swish", kernels::Activation::kSilu},
    {"gelu", kernels::Activation::kGelu},
    {"gelu_python", kernels::Activation::kGelu},
    {"gelu_new", kernels::Activation::kGeluTanh},
    {"gelu_fast", kernels::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", kernels::Activation::kGeluTanh},
    {"quick_gelu", kernels::Activation::kQuickGelu},
    {"relu", kernels::Activation::kRelu},
    {"relu2", kernels::Activation::kRelu2},
}};

std::vector<OutputSlice> UpSlices(const WeightSource& weights, const std::string& prefix, const MlpSpec& spec,
                                  Shard shard) {
  const int64_t size = spec.intermediate_size;
  // GGUF files of some families have two matrices where the Hugging Face checkpoint has one.
  const bool is_split = !weights.Contains(prefix + spec.gate_up_proj + ".weight") &&
                        weights.Contains(prefix + spec.gate_proj + ".weight");
  if (!spec.gate_up_proj.empty() && !is_split) {
    const std::string name = prefix + spec.gate_up_proj;
    std::vector<OutputSlice> slices = {{name, 2 * size, shard}, {name, 2 * size, {size + shard.begin, shard.count}}};
    if (spec.up_comes_first) std::swap(slices[0], slices[1]);
    return slices;
  }
  if (spec.gate_proj.empty()) return {{prefix + spec.up_proj, size, shard}};
  return {{prefix + spec.gate_proj, size, shard}, {prefix + spec.up_proj, size, shard}};
}

}  // namespace

kernels::Activation ActivationByName(const ModelConfig& model) {
  std::string known;
  for (const auto& [name, activation] : kActivations) {
    if (name == model.hidden_act) return activation;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw ModelError("cannot load model " + Escape(model.model) + ": unknown activation (" +
                   Escape(model.hidden_act, 60) + "; known: " + known + ")");
}

Mlp::Mlp(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MlpSpec& spec)
    : step_(load.step),
      gated_(!spec.gate_proj.empty() || !spec.gate_up_proj.empty()),
      activation_(spec.activation),
      clamped_swiglu_(spec.clamped_swiglu),
      gate_cutoff_(spec.gate_cutoff),
      gate_scale_(static_cast<float>(spec.gate_scale)),
      down_scale_(static_cast<float>(spec.down_scale)),
      intermediate_size_(spec.intermediate_size),
      hidden_size_(model.hidden_size),
      shard_(ShardOfRows(spec.intermediate_size, load.step.rank(), load.step.world_size())),
      // A calibration needs the inputs of all tokens in one call.
      rows_at_once_(load.calibration_run == nullptr ? load.step.kernels->tiles->rows_at_once
                                                    : std::numeric_limits<int32_t>::max()),
      up_(load, model, model.hidden_size,
          SplitRows(load.step,
                    [&](int rank, int world_size) {
                      return UpSlices(load.weights, prefix, spec,
                                      ShardOfRows(spec.intermediate_size, rank, world_size));
                    }),
          spec.has_bias),
      down_(load, model, prefix + spec.down_proj, model.hidden_size,
            ShardsOfRows(spec.intermediate_size, load.step.world_size()), spec.has_bias || spec.has_down_bias) {}

void Mlp::Forward(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) const {
  const int64_t num_parts = (num_rows + rows_at_once_ - 1) / rows_at_once_;
  const int64_t tile_rows = step_.kernels->tiles->bfloat16_tile_rows;
  const int64_t num_tiles = kernels::NumTiles(num_rows, tile_rows);
  // Full tiles are the fastest, so only the last part may have others.
  const auto begin_of = [&](int64_t part) { return std::min(num_rows, num_tiles * part / num_parts * tile_rows); };
  for (int64_t part = 0; part < num_parts; ++part) {
    const int64_t begin = begin_of(part), end = begin_of(part + 1);
    ForwardRows(x + begin * hidden_size_, end - begin, scratch, out + begin * hidden_size_,
                lora_slots == nullptr ? nullptr : lora_slots + begin);
  }
}

void Mlp::CutOff(int64_t num_rows, int64_t stride, float* gate, float* sums) const {
  float* const means = sums;
  float* const variances = sums + num_rows;
  // Each rank sums the whole rows, so that a sum does not depend on the number of ranks. Sums in double, so that their
  // rounding does not matter.
  const std::span<const PeerBuffers> peers = step_.communicator->Exchange({.in = gate, .in_stride = stride});
  const GatheredRows all = GatherColumns(step_, peers, down_.in_columns(), 0, num_rows);
  step_.communicator->Barrier();
  ForEachRow(step_, num_rows, 8 * intermediate_size_, [&](int64_t row) {
    const auto x = std::span(all.x + row * all.stride, static_cast<size_t>(intermediate_size_));
    double sum = 0.0, squares = 0.0;
    for (const float value : x) sum += double{value};
    means[row] = static_cast<float>(sum / static_cast<double>(intermediate_size_));
    const double mean = means[row];
    for (const float value : x) squares += (double{value} - mean) * (double{value} - mean);
    variances[row] = static_cast<float>(squares / static_cast<double>(intermediate_size_));
  });
  ForEachRow(step_, num_rows, 2 * shard_.count, [&](int64_t row) {
    const float cutoff = means[row] + std::sqrt(variances[row]) * static_cast<float>(*gate_cutoff_);
    for (float* x = gate + row * stride; x != gate + row * stride + shard_.count; ++x) {
      const float above = *x - cutoff;
      *x = above < 0.0f ? 0.0f : above;  // NaN stays NaN
    }
  });
}

void Mlp::Activate(float* gate, const float* up, int64_t count, float* out) const {
  if (gate_scale_ != 1.0f) step_.kernels->scale(gate, gate_scale_, count);
  if (clamped_swiglu_) {
    return step_.kernels->clamped_swiglu(gate, up, static_cast<float>(clamped_swiglu_->alpha),
                                         static_cast<float>(clamped_swiglu_->limit), count, out);
  }
  step_.kernels->activation(activation_, gate, gated_ ? up : nullptr, count, out);
}

void Mlp::ForwardUp(const float* x, int64_t num_rows, float* y, int64_t y_stride, const int32_t* lora_slots) const {
  const auto activate_run = [&](const OutputRun& run) {
    for (int64_t row = 0; row < num_rows; ++row) {
      float* const gate = run.y + row * run.count;
      Activate(gate, gate + num_rows * run.count, run.count, y + row * y_stride + run.begin);
    }
  };
  if (!gate_cutoff_ && up_.ForwardInRuns(x, hidden_size_, num_rows, num_up_slices(), lora_slots, activate_run)) return;
  up_.Forward(x, hidden_size_, num_rows, y, y_stride, lora_slots);
  if (gate_cutoff_) CutOff(num_rows, y_stride, y, y + num_rows * y_stride);
  const int64_t size = shard_.count;
  ForEachRow(step_, num_rows, 4 * size, [&](int64_t row) {
    float* const gate = y + row * y_stride;
    Activate(gate, gate + size, size, gate);
  });
}

bool Mlp::ForwardInRuns(const float* x, int64_t num_rows, float* out, const int32_t* lora_slots) const {
  if (gate_cutoff_) return false;
  const std::optional<kernels::PackedActivationsView> packed =
      down_.PackedX(num_rows, lora_slots, step_.workspace->packed_intermediate);
  if (!packed || packed->scale_columns() > kernels::kScaleColumns) return false;
  const auto pack_run = [&](const OutputRun& run) {
    for (int64_t row = 0; row < num_rows; ++row) {
      float* const gate = run.y + row * run.count;
      Activate(gate, gate + num_rows * run.count, run.count, gate);
    }
    for (int64_t tile = 0; tile < packed->num_tiles(); ++tile) {
      const int64_t begin = packed->tile_begin(tile), end = packed->tile_begin(tile + 1);
      down_.PackTile(run.y + begin * run.count, run.count,
                     packed->Rows(begin, end - begin).Columns(run.begin, run.count));
    }
  };
  if (!up_.ForwardInRuns(x, hidden_size_, num_rows, num_up_slices(), lora_slots, pack_run)) return false;
  down_.ForwardPacked(*packed, out);
  return true;
}

void Mlp::ForwardDown(const GatheredRows& activations, int64_t num_rows, float* y, const int32_t* lora_slots) const {
  const int64_t count = out_columns().count;
  down_.ForwardOwn(activations.x, activations.stride, num_rows, y, count, lora_slots);
  if (down_scale_ == 1.0f) return;
  ForEachRow(step_, num_rows, count, [&](int64_t row) { step_.kernels->scale(y + row * count, down_scale_, count); });
}

void Mlp::ForwardRows(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) const {
  const int64_t stride = up_.out_features();
  if (!ForwardInRuns(x, num_rows, out, lora_slots)) {
    ForwardUp(x, num_rows, scratch, stride, lora_slots);
    down_.Forward(scratch, stride, num_rows, out, lora_slots);
  }
  if (down_scale_ == 1.0f) return;
  ForEachRow(step_, num_rows, hidden_size_,
             [&](int64_t row) { step_.kernels->scale(out + row * hidden_size_, down_scale_, hidden_size_); });
}

}  // namespace vllm
