#include "engine/layers/recurrent/mamba2.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/config/errors.h"
#include "engine/layers/for_each_row.h"
#include "engine/layers/norm.h"
#include "engine/layers/recurrent/linear_recurrence.h"

namespace vllm {

namespace {

// Each thread computes B and C for its own heads, so few heads per part would repeat this work.
constexpr int64_t kHeadsPerPart = 8;

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

Shard HeadsOf(const LoadContext& load, const Mamba2Spec& spec) {
  const int size = load.step.world_size();
  if (spec.num_heads % size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(spec.num_heads) +
                      " Mamba heads (" + std::to_string(size) + ")");
  }
  return ShardOf(spec.num_heads, load.step.rank(), size);
}

Shard GroupsOf(const Mamba2Spec& spec, Shard heads) {
  const int64_t heads_per_group = spec.num_heads / spec.num_groups;
  const int64_t first = heads.begin / heads_per_group;
  return {first, (heads.begin + heads.count - 1) / heads_per_group + 1 - first};
}

}  // namespace

std::vector<OutputSlice> Mamba2::InputSlices(const std::string& prefix, const Mamba2Spec& spec, Shard heads,
                                             Shard groups) {
  const int64_t inner = spec.num_heads * spec.head_dim;
  const int64_t group_floats = spec.num_groups * spec.state_size;
  const int64_t total = 2 * inner + 2 * group_floats + spec.num_heads;
  const auto slice = [&](int64_t part, Shard shard, int64_t size) {
    return OutputSlice{prefix + "in_proj", total, {part + shard.begin * size, shard.count * size}};
  };
  return {slice(inner, heads, spec.head_dim), slice(2 * inner, groups, spec.state_size),
          slice(2 * inner + group_floats, groups, spec.state_size), slice(2 * inner + 2 * group_floats, heads, 1),
          slice(0, heads, spec.head_dim)};
}

Mamba2::Mamba2(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
               const Mamba2Spec& spec)
    : step_(load.step),
      spec_(spec),
      layer_(layer),
      hidden_size_(model.hidden_size),
      heads_(HeadsOf(load, spec)),
      groups_(GroupsOf(spec, heads_)),
      in_proj_(load, model, model.hidden_size, InputSlices(prefix, spec, heads_, groups_), spec.proj_bias),
      conv_(load, {.name = prefix + "conv1d",
                   .total = spec.num_heads * spec.head_dim + 2 * spec.num_groups * spec.state_size,
                   .parts = {{heads_.begin * spec.head_dim, heads_.count * spec.head_dim},
                             {spec.num_heads * spec.head_dim + groups_.begin * spec.state_size,
                              groups_.count * spec.state_size},
                             {spec.num_heads * spec.head_dim + (spec.num_groups + groups_.begin) * spec.state_size,
                              groups_.count * spec.state_size}},
                   .num_taps = spec.num_taps,
                   .has_bias = spec.conv_bias,
                   .activation = spec.activation}),
      out_proj_(load, model, prefix + "out_proj", model.hidden_size, spec.num_heads * spec.head_dim,
                {heads_.begin * spec.head_dim, heads_.count * spec.head_dim}, spec.proj_bias) {
  // GGUF files have -exp(A_log), and other names.
  const bool is_gguf = !load.weights.Contains(prefix + "A_log") && load.weights.Contains(prefix + "A");
  a_ = LoadFloats(load.weights, prefix + (is_gguf ? "A" : "A_log"), spec.num_heads, heads_);
  if (!is_gguf) {
    for (float& a : a_) a = -std::exp(a);
  }
  dt_bias_ = LoadFloats(load.weights, prefix + (is_gguf ? "dt.bias" : "dt_bias"), spec.num_heads, heads_);
  d_ = LoadFloats(load.weights, prefix + "D", spec.num_heads, heads_);
  if (spec.has_norm) {
    norm_weight_ = LoadFloats(load.weights, prefix + "norm.weight", spec.num_heads * spec.head_dim,
                              {heads_.begin * spec.head_dim, heads_.count * spec.head_dim});
  }
  parts_ = MakeParts();
  step_.workspace->recurrent.Reserve(
      step_.threads->num_threads(),
      LinearRecurrenceHeads::ScratchFloats(spec.state_size, spec.head_dim, std::min(kHeadsPerPart, heads_per_group())));
}

std::vector<Mamba2::Part> Mamba2::MakeParts() const {
  std::vector<Part> parts;
  for (int64_t head = 0; head < heads_.count; ++head) {
    const int64_t group = (heads_.begin + head) / heads_per_group() - groups_.begin;
    if (parts.empty() || parts.back().group != group ||
        static_cast<int64_t>(parts.back().heads.size()) == kHeadsPerPart) {
      parts.push_back({.group = group, .heads = {}});
    }
    parts.back().heads.push_back(head);
  }
  return parts;
}

RecurrentStateSpec Mamba2::state() const {
  return {conv_.window_floats(), heads_.count, spec_.state_size * spec_.head_dim};
}

int64_t Mamba2::scratch_floats(int64_t num_tokens) const {
  return num_tokens * (row_floats() + inner() + spec_.num_groups);
}

void Mamba2::Reserve(int64_t max_tokens) const {
  in_proj_.Reserve(max_tokens);
  out_proj_.Reserve(max_tokens);
}

SequenceInputs Mamba2::Inputs(const RecurrentSequence& sequence, KVCache& cache, const float* rows) const {
  return SequenceInputs(sequence, layer_,
                        {.rows = rows + sequence.first_row * row_floats(),
                         .row_stride = row_floats(),
                         .width = z_offset(),
                         .window = cache.window(layer_, sequence.block_ids),
                         .num_taps = conv_.num_taps(),
                         .num_channels = conv_.num_channels()});
}

void Mamba2::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                     int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  float* const rows = scratch;
  float* const y = rows + num_tokens * row_floats();
  float* const sums = y + num_tokens * inner();
  in_proj_.Forward(x, hidden_size_, num_tokens, rows, row_floats(), lora_slots);
  const auto num_parts = static_cast<int64_t>(parts_.size());
  step_.threads->ParallelFor(static_cast<int64_t>(sequences.size()) * num_parts, [&](int64_t task, int thread) {
    const RecurrentSequence& sequence = sequences[static_cast<size_t>(task / num_parts)];
    float* const own_scratch = step_.workspace->recurrent.scratch[static_cast<size_t>(thread)].data();
    RunPart(sequence, Inputs(sequence, cache, rows), cache, parts_[static_cast<size_t>(task % num_parts)], own_scratch,
            y);
  });
  // The windows and the accepted drafts are inputs of all heads, so they may change only now.
  for (const RecurrentSequence& sequence : sequences) {
    conv_.SaveWindows(sequence, layer_, Inputs(sequence, cache, rows), cache);
    KeepDrafts(sequence, layer_, rows, row_floats(), z_offset());
  }
  Gate(rows, num_tokens, sums, y);
  out_proj_.Forward(y, inner(), num_tokens, out, lora_slots);
}

void Mamba2::RunPart(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache, const Part& part,
                     float* scratch, float* y) const {
  const int64_t group_floats = groups_.count * spec_.state_size;
  const float max_dt = spec_.max_dt > 0.0 ? static_cast<float>(spec_.max_dt) : std::numeric_limits<float>::infinity();
  const auto min_dt = static_cast<float>(spec_.min_dt);
  const auto prepare = [&](int64_t i, const LinearRecurrenceRow& row) {
    const float* const own = inputs.Row(i);
    conv_.Row(step_, inputs, i, inner() + part.group * spec_.state_size, spec_.state_size, row.key);
    conv_.Row(step_, inputs, i, inner() + group_floats + part.group * spec_.state_size, spec_.state_size, row.query);
    const auto num_heads = static_cast<int64_t>(part.heads.size());
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = part.heads[static_cast<size_t>(h)];
      const auto index = static_cast<size_t>(head);
      conv_.Row(step_, inputs, i, head * spec_.head_dim, spec_.head_dim, row.value + h * row.value_step);
      const float dt = std::clamp(Softplus(own[dt_offset() + head] + dt_bias_[index]), min_dt, max_dt);
      row.decay[h * row.gate_step] = std::exp(a_[index] * dt);
      row.beta[h * row.gate_step] = dt;
    }
  };
  RunLinearRecurrence(step_, sequence, cache,
                      {.layer = layer_,
                       .heads = part.heads,
                       .key_dim = spec_.state_size,
                       .value_dim = spec_.head_dim,
                       .skips = d_.data()},
                      scratch, y, inner(), prepare);
}

void Mamba2::Gate(const float* rows, int64_t num_tokens, float* sums, float* y) const {
  const int64_t width = inner();
  const kernels::Kernels& kernels = *step_.kernels;
  const int64_t num_groups = spec_.num_groups;
  const int64_t group_width = heads_per_group() * spec_.head_dim;
  // Calls f(group, first column, number of columns) for the part of each group that this rank has.
  const auto for_each_group = [&](const auto& f) {
    const int64_t first = heads_.begin * spec_.head_dim;
    for (int64_t group = groups_.begin; group < groups_.begin + groups_.count; ++group) {
      const int64_t begin = std::max(group * group_width, first);
      const int64_t end = std::min((group + 1) * group_width, first + width);
      f(group, begin - first, end - begin);
    }
  };
  ForEachRow(step_, num_tokens, 4 * width, [&](int64_t row) {
    float* const own = y + row * width;
    kernels.activation(kernels::Activation::kSilu, rows + row * row_floats() + z_offset(), own, width, own);
    if (!spec_.has_norm) return;
    float* const row_sums = sums + row * num_groups;
    std::memset(row_sums, 0, static_cast<size_t>(num_groups) * sizeof(float));
    for_each_group([&](int64_t group, int64_t begin, int64_t count) {
      row_sums[group] = kernels.sum_of_squares(own + begin, count);
    });
  });
  if (!spec_.has_norm) return;
  step_.communicator->AllReduce(sums, num_tokens * num_groups);
  ForEachRow(step_, num_tokens, 2 * width, [&](int64_t row) {
    float* const own = y + row * width;
    for_each_group([&](int64_t group, int64_t begin, int64_t count) {
      const float mean = sums[row * num_groups + group] / static_cast<float>(group_width);
      const float factor = 1.0f / std::sqrt(mean + static_cast<float>(spec_.norm_eps));
      kernels.mul_scaled(own + begin, norm_weight_.data() + begin, factor, count, own + begin);
    });
  });
}

}  // namespace vllm
