#include "engine/layers/recurrent/mamba2.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/config/errors.h"
#include "engine/layers/column_gather.h"
#include "engine/layers/for_each_row.h"
#include "engine/layers/norm.h"
#include "engine/layers/recurrent/linear_recurrence.h"

namespace vllm {

namespace {

// Each thread computes B and C for its own heads, so few heads per part would repeat this work.
constexpr int64_t kHeadsPerPart = 8;

Shard HeadsOf(const Mamba2Spec& spec, int rank, int world_size) {
  if (spec.num_heads % world_size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(spec.num_heads) +
                      " Mamba heads (" + std::to_string(world_size) + ")");
  }
  return ShardOf(spec.num_heads, rank, world_size);
}

Shard GroupsOf(const Mamba2Spec& spec, Shard heads) {
  const int64_t heads_per_group = spec.num_heads / spec.num_groups;
  const int64_t first = heads.begin / heads_per_group;
  return {first, (heads.begin + heads.count - 1) / heads_per_group + 1 - first};
}

}  // namespace

ConvMixer::Options Mamba2::MixerOptions(const LoadContext& load, const std::string& prefix, const Mamba2Spec& spec,
                                        Shard heads, Shard groups) {
  const int64_t inner = spec.num_heads * spec.head_dim;
  const int64_t group_floats = spec.num_groups * spec.state_size;
  const auto part = [](int64_t first, Shard shard, int64_t size) {
    return Shard{first + shard.begin * size, shard.count * size};
  };
  // The channels of the convolution: x, B and C.
  const auto channels = [&](Shard own_heads, Shard own_groups) {
    return std::vector<Shard>{part(0, own_heads, spec.head_dim), part(inner, own_groups, spec.state_size),
                              part(inner + group_floats, own_groups, spec.state_size)};
  };
  Options options;
  options.conv = {.name = prefix + "conv1d",
                  .total = inner + 2 * group_floats,
                  .parts = channels(heads, groups),
                  .num_taps = spec.num_taps,
                  .has_bias = spec.conv_bias,
                  .activation = spec.activation};
  for (const Shard& own : options.conv.parts) options.num_inputs += own.count;
  options.num_inputs += heads.count;
  options.in_proj = SplitRows(load.step, [&](int rank, int world_size) {
    const Shard own = HeadsOf(spec, rank, world_size);
    std::vector<OutputSlice> slices;
    const auto append = [&](Shard rows) {
      slices.push_back({prefix + "in_proj", 2 * inner + 2 * group_floats + spec.num_heads, rows});
    };
    for (const Shard& rows : channels(own, GroupsOf(spec, own))) append({inner + rows.begin, rows.count});
    append(part(2 * inner + 2 * group_floats, own, 1));
    append(part(0, own, spec.head_dim));
    return slices;
  });
  options.in_bias = spec.in_bias;
  options.out_proj = prefix + "out_proj";
  options.inner = ShardsOfHeads(spec.num_heads, spec.head_dim, load.step.world_size());
  options.out_bias = spec.out_bias;
  return options;
}

Mamba2::Mamba2(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
               const Mamba2Spec& spec)
    : Mamba2(load, model, layer, prefix, spec, HeadsOf(spec, load.step.rank(), load.step.world_size()),
             GroupsOf(spec, HeadsOf(spec, load.step.rank(), load.step.world_size()))) {}

Mamba2::Mamba2(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
               const Mamba2Spec& spec, Shard heads, Shard groups)
    : ConvMixer(load, model, layer, MixerOptions(load, prefix, spec, heads, groups)),
      spec_(spec),
      heads_(heads),
      groups_(groups),
      decay_(LoadDecayWeights(load.weights, prefix, spec.num_heads, heads)),
      d_(LoadFloats(load.weights, prefix + "D", spec.num_heads, heads)) {
  if (spec.has_norm) {
    norm_weight_ = LoadFloats(load.weights, prefix + "norm.weight", spec.num_heads * spec.head_dim,
                              {heads.begin * spec.head_dim, inner()});
  }
  parts_ = MakeParts();
  const int64_t num_heads = std::min(kHeadsPerPart, heads_per_group());
  const size_t floats = LinearRecurrenceHeads::ScratchFloats(spec.state_size, spec.head_dim, num_heads);
  step().workspace->recurrent.Reserve(step().threads->num_threads(), floats);
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
  return {conv().window_floats(), heads_.count, spec_.state_size * spec_.head_dim};
}

int64_t Mamba2::scratch_floats(int64_t num_tokens) const {
  return num_tokens * (row_floats() + inner() + (spec_.has_norm ? spec_.num_heads : 0));
}

void Mamba2::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                     int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  float* const rows = scratch;
  float* const y = rows + num_tokens * row_floats();
  float* const sums = y + num_tokens * inner();
  ProjectIn(x, num_tokens, rows, lora_slots);
  Multiply(num_tokens, rows);
  RunParts(sequences, cache, rows, static_cast<int64_t>(parts_.size()),
           [&](const RecurrentSequence& sequence, const SequenceInputs& inputs, int64_t part, float* own_scratch) {
             RunPart(sequence, inputs, cache, parts_[static_cast<size_t>(part)], own_scratch, y);
           });
  Gate(rows, num_tokens, sums, y);
  ProjectOut(y, num_tokens, out, lora_slots);
}

void Mamba2::Multiply(int64_t num_tokens, float* rows) const {
  const auto [z, x, b, c, dt] = spec_.multipliers;
  const int64_t group_floats = groups_.count * spec_.state_size;
  // In the order of a row.
  const std::array<std::pair<double, int64_t>, 5> parts = {
      {{x, inner()}, {b, group_floats}, {c, group_floats}, {dt, heads_.count}, {z, inner()}}};
  if (std::ranges::all_of(parts, [](const auto& part) { return part.first == 1.0; })) return;
  ForEachRow(step(), num_tokens, row_floats(), [&](int64_t row) {
    float* part = rows + row * row_floats();
    for (const auto& [multiplier, count] : parts) {
      step().kernels->scale(part, static_cast<float>(multiplier), count);
      part += count;
    }
  });
}

void Mamba2::RunPart(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache, const Part& part,
                     float* scratch, float* y) const {
  const int64_t group_floats = groups_.count * spec_.state_size;
  const float max_dt = spec_.max_dt > 0.0 ? static_cast<float>(spec_.max_dt) : std::numeric_limits<float>::infinity();
  const auto min_dt = static_cast<float>(spec_.min_dt);
  const auto prepare = [&](int64_t i, const LinearRecurrenceRow& row) {
    const float* const own = inputs.Row(i);
    conv().Row(step(), inputs, i, inner() + part.group * spec_.state_size, spec_.state_size, row.key);
    conv().Row(step(), inputs, i, inner() + group_floats + part.group * spec_.state_size, spec_.state_size, row.query);
    const auto num_heads = static_cast<int64_t>(part.heads.size());
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = part.heads[static_cast<size_t>(h)];
      const auto index = static_cast<size_t>(head);
      conv().Row(step(), inputs, i, head * spec_.head_dim, spec_.head_dim, row.value + h * row.value_step);
      const float dt = std::clamp(Softplus(own[dt_offset() + head] + decay_.dt_bias[index]), min_dt, max_dt);
      row.decay[h * row.gate_step] = std::exp(decay_.a[index] * dt);
      row.beta[h * row.gate_step] = dt;
    }
  };
  RunLinearRecurrence(step(), sequence, cache,
                      {.layer = layer(),
                       .heads = part.heads,
                       .key_dim = spec_.state_size,
                       .value_dim = spec_.head_dim,
                       .skips = d_.data()},
                      scratch, y, inner(), prepare);
}

void Mamba2::Gate(const float* rows, int64_t num_tokens, float* sums, float* y) const {
  const int64_t width = inner();
  const kernels::Kernels& kernels = *step().kernels;
  const int64_t num_heads = spec_.num_heads, head_dim = spec_.head_dim;
  const auto multiply_by_gate = [&](int64_t row) {
    float* const own = y + row * width;
    kernels.activation(kernels::Activation::kSilu, rows + row * row_floats() + z_offset(), own, width, own);
  };
  const bool norm_before_gate = spec_.has_norm && spec_.norm_before_gate;
  ForEachRow(step(), num_tokens, 4 * width, [&](int64_t row) {
    if (!norm_before_gate) multiply_by_gate(row);
    if (!spec_.has_norm) return;
    const float* const own = y + row * width;
    float* const own_sums = sums + row * num_heads + heads_.begin;
    for (int64_t i = 0; i < heads_.count; ++i) own_sums[i] = kernels.sum_of_squares(own + i * head_dim, head_dim);
  });
  if (!spec_.has_norm) return;
  // Adds one sum per head, in ascending order, because the heads of a group may be on several ranks.
  AllGather(step(), {&heads_, 1}, num_tokens, num_heads, sums);
  ForEachRow(step(), num_tokens, 2 * width, [&](int64_t row) {
    float* const own = y + row * width;
    for (int64_t group = groups_.begin; group < groups_.begin + groups_.count; ++group) {
      const int64_t first = group * heads_per_group(), end = first + heads_per_group();
      const float sum = std::accumulate(sums + row * num_heads + first, sums + row * num_heads + end, 0.0f);
      const float mean = sum / static_cast<float>(heads_per_group() * head_dim);
      const float factor = 1.0f / std::sqrt(mean + static_cast<float>(spec_.norm_eps));
      const int64_t own_first = std::max(first, heads_.begin) - heads_.begin;
      const int64_t own_end = std::min(end, heads_.begin + heads_.count) - heads_.begin;
      kernels.mul_scaled(own + own_first * head_dim, norm_weight_.data() + own_first * head_dim, factor,
                         (own_end - own_first) * head_dim, own + own_first * head_dim);
    }
    if (norm_before_gate) multiply_by_gate(row);
  });
}

}  // namespace vllm
