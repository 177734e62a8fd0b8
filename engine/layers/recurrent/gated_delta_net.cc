#include "engine/layers/recurrent/gated_delta_net.h"

#include <algorithm>
#include <cmath>

#include "engine/config/errors.h"
#include "engine/layers/for_each_row.h"
#include "engine/layers/norm.h"
#include "engine/layers/recurrent/linear_recurrence.h"

namespace vllm {

namespace {

// The epsilon under the square root of the L2 norm of queries and keys, as in transformers.
constexpr float kL2NormEps = 1e-6f;

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void AppendRows(const std::string& name, int64_t total, Shard rows, std::vector<OutputSlice>& slices) {
  OutputSlice* const last = slices.empty() ? nullptr : &slices.back();
  if (last != nullptr && last->name == name && last->shard.begin + last->shard.count == rows.begin) {
    last->shard.count += rows.count;
  } else {
    slices.push_back({name, total, rows});
  }
}

}  // namespace

GatedDeltaNet::Heads GatedDeltaNet::MakeHeads(const GatedDeltaNetSpec& spec, int rank, int world_size) {
  if (spec.num_value_heads % world_size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(spec.num_value_heads) +
                      " value heads of linear attention (" + std::to_string(world_size) + ")");
  }
  Heads heads;
  heads.values = ShardOf(spec.num_value_heads, rank, world_size);
  const int64_t values_per_key = spec.num_value_heads / spec.num_key_heads;
  std::vector<int64_t> keys;
  for (int64_t i = heads.values.begin; i < heads.values.begin + heads.values.count; ++i) {
    keys.push_back(spec.tiled_value_heads ? i % spec.num_key_heads : i / values_per_key);
  }
  heads.keys = keys;
  std::sort(heads.keys.begin(), heads.keys.end());
  heads.keys.erase(std::unique(heads.keys.begin(), heads.keys.end()), heads.keys.end());
  heads.values_of.resize(heads.keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto index = std::lower_bound(heads.keys.begin(), heads.keys.end(), keys[i]) - heads.keys.begin();
    heads.values_of[static_cast<size_t>(index)].push_back(static_cast<int64_t>(i));
  }
  return heads;
}

std::vector<OutputSlice> GatedDeltaNet::InputSlices(const std::string& prefix, const GatedDeltaNetSpec& spec,
                                                    const Heads& heads) {
  const int64_t keys = spec.num_key_heads * spec.key_dim;
  const int64_t values = spec.num_value_heads * spec.value_dim;
  const int64_t per_key = spec.num_value_heads / spec.num_key_heads;
  const int64_t group = 2 * spec.key_dim + 2 * per_key * spec.value_dim;  // rows of a key head in in_proj_qkvz
  const int64_t end = heads.values.begin + heads.values.count;
  const std::string qkv = prefix + (spec.fused_qkvz ? "in_proj_qkvz" : "in_proj_qkv");
  const std::string z = prefix + (spec.fused_qkvz ? "in_proj_qkvz" : "in_proj_z");
  const int64_t qkv_rows = spec.fused_qkvz ? 2 * (keys + values) : 2 * keys + values;
  const int64_t z_rows = spec.fused_qkvz ? 2 * (keys + values) : values;
  std::vector<OutputSlice> slices;
  for (const int64_t part : {int64_t{0}, int64_t{1}}) {
    for (const int64_t key : heads.keys) {
      const int64_t row = spec.fused_qkvz ? key * group + part * spec.key_dim : part * keys + key * spec.key_dim;
      AppendRows(qkv, qkv_rows, {row, spec.key_dim}, slices);
    }
  }
  const auto append_values = [&](const std::string& name, int64_t rows, int64_t fused_part, int64_t separate_part) {
    for (int64_t i = heads.values.begin; i < end; ++i) {
      const int64_t row = spec.fused_qkvz ? i / per_key * group + fused_part + i % per_key * spec.value_dim
                                          : separate_part + i * spec.value_dim;
      AppendRows(name, rows, {row, spec.value_dim}, slices);
    }
  };
  append_values(qkv, qkv_rows, 2 * spec.key_dim, 2 * keys);
  for (const int64_t part : {int64_t{0}, int64_t{1}}) {
    for (int64_t i = heads.values.begin; i < end; ++i) {
      if (spec.fused_ba) {
        const int64_t row = i / per_key * 2 * per_key + part * per_key + i % per_key;
        AppendRows(prefix + "in_proj_ba", 2 * spec.num_value_heads, {row, 1}, slices);
      } else {
        AppendRows(prefix + (part == 0 ? "in_proj_b" : "in_proj_a"), spec.num_value_heads, {i, 1}, slices);
      }
    }
  }
  append_values(z, z_rows, 2 * spec.key_dim + per_key * spec.value_dim, 0);
  return slices;
}

std::vector<Shard> GatedDeltaNet::ConvChannels(const GatedDeltaNetSpec& spec, const Heads& heads) {
  std::vector<Shard> channels;
  const int64_t keys = spec.num_key_heads * spec.key_dim;
  for (const int64_t part : {int64_t{0}, keys}) {
    for (const int64_t key : heads.keys) channels.push_back({part + key * spec.key_dim, spec.key_dim});
  }
  channels.push_back({2 * keys + heads.values.begin * spec.value_dim, heads.values.count * spec.value_dim});
  return channels;
}

ConvMixer::Options GatedDeltaNet::MixerOptions(const LoadContext& load, const std::string& prefix,
                                               const GatedDeltaNetSpec& spec, const Heads& heads) {
  Options options;
  options.in_proj = SplitRows(load.step, [&](int rank, int world_size) {
    return InputSlices(prefix, spec, MakeHeads(spec, rank, world_size));
  });
  options.conv = {.name = prefix + "conv1d",
                  .total = 2 * spec.num_key_heads * spec.key_dim + spec.num_value_heads * spec.value_dim,
                  .parts = ConvChannels(spec, heads),
                  .num_taps = spec.num_taps,
                  .activation = spec.activation};
  options.inner = ShardsOfHeads(spec.num_value_heads, spec.value_dim, load.step.world_size());
  const auto num_keys = static_cast<int64_t>(heads.keys.size());
  options.num_inputs = 2 * num_keys * spec.key_dim + heads.values.count * (spec.value_dim + 2);
  options.out_proj = prefix + "out_proj";
  return options;
}

GatedDeltaNet::GatedDeltaNet(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                             const GatedDeltaNetSpec& spec)
    : GatedDeltaNet(load, model, layer, prefix, spec, MakeHeads(spec, load.step.rank(), load.step.world_size())) {}

GatedDeltaNet::GatedDeltaNet(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                             const GatedDeltaNetSpec& spec, const Heads& heads)
    : ConvMixer(load, model, layer, MixerOptions(load, prefix, spec, heads)),
      spec_(spec),
      heads_(heads),
      decay_(LoadDecayWeights(load.weights, prefix, spec.num_value_heads, heads.values)),
      norm_weight_(LoadFloats(load.weights, prefix + "norm.weight", spec.value_dim, {0, spec.value_dim})) {
  const int64_t values_per_key = spec.num_value_heads / spec.num_key_heads;
  const size_t floats = LinearRecurrenceHeads::ScratchFloats(spec.key_dim, spec.value_dim, values_per_key);
  step().workspace->recurrent.Reserve(step().threads->num_threads(), floats);
}

RecurrentStateSpec GatedDeltaNet::state() const {
  return {conv().window_floats(), heads_.values.count, spec_.key_dim * spec_.value_dim};
}

int64_t GatedDeltaNet::scratch_floats(int64_t num_tokens) const { return num_tokens * (row_floats() + inner()); }

void GatedDeltaNet::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                            int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  float* const rows = scratch;
  float* const attended = rows + num_tokens * row_floats();
  const int64_t width = inner();
  ProjectIn(x, num_tokens, rows, lora_slots);
  RunParts(sequences, cache, rows, num_key_heads(),
           [&](const RecurrentSequence& sequence, const SequenceInputs& inputs, int64_t key, float* own_scratch) {
             RunKeyHead(sequence, inputs, cache, key, own_scratch, attended);
           });
  ForEachRow(step(), num_tokens, 4 * width, [&](int64_t row) {
    float* const y = attended + row * width;
    float* const z = rows + row * row_floats() + z_offset();
    for (int64_t i = 0; i < width; i += spec_.value_dim) {
      step().kernels->rms_norm(y + i, norm_weight_.data(), static_cast<float>(spec_.norm_eps), spec_.value_dim, y + i);
    }
    step().kernels->activation(kernels::Activation::kSilu, z, y, width, y);
  });
  ProjectOut(attended, num_tokens, out, lora_slots);
}

void GatedDeltaNet::RunKeyHead(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache,
                               int64_t key, float* scratch, float* attended) const {
  const std::vector<int64_t>& heads = heads_.values_of[static_cast<size_t>(key)];
  const int64_t key_dim = spec_.key_dim, value_dim = spec_.value_dim;
  const int64_t key_floats = num_key_heads() * key_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  const auto prepare = [&](int64_t i, const LinearRecurrenceRow& row) {
    const float* const gates = inputs.Row(i);
    conv().Row(step(), inputs, i, key * key_dim, key_dim, row.query);
    conv().Row(step(), inputs, i, key_floats + key * key_dim, key_dim, row.key);
    const kernels::Kernels& kernels = *step().kernels;
    kernels.scale(row.query, scale / std::sqrt(kernels.sum_of_squares(row.query, key_dim) + kL2NormEps), key_dim);
    kernels.scale(row.key, 1.0f / std::sqrt(kernels.sum_of_squares(row.key, key_dim) + kL2NormEps), key_dim);
    const auto num_heads = static_cast<int64_t>(heads.size());
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = heads[static_cast<size_t>(h)];
      const auto index = static_cast<size_t>(head);
      conv().Row(step(), inputs, i, 2 * key_floats + head * value_dim, value_dim, row.value + h * row.value_step);
      row.decay[h * row.gate_step] =
          std::exp(decay_.a[index] * Softplus(gates[a_offset() + head] + decay_.dt_bias[index]));
      row.beta[h * row.gate_step] = Sigmoid(gates[b_offset() + head]);
    }
  };
  RunLinearRecurrence(
      step(), sequence, cache,
      {.layer = layer(), .heads = heads, .key_dim = key_dim, .value_dim = value_dim, .delta_rule = true}, scratch,
      attended, inner(), prepare);
}

}  // namespace vllm
