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

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }
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

GatedDeltaNet::Heads GatedDeltaNet::MakeHeads(const LoadContext& load, const GatedDeltaNetSpec& spec) {
  const int size = load.step.world_size();
  if (spec.num_value_heads % size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(spec.num_value_heads) +
                      " value heads of linear attention (" + std::to_string(size) + ")");
  }
  Heads heads;
  heads.values = ShardOf(spec.num_value_heads, load.step.rank(), size);
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

GatedDeltaNet::GatedDeltaNet(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                             const GatedDeltaNetSpec& spec)
    : step_(load.step),
      spec_(spec),
      layer_(layer),
      hidden_size_(model.hidden_size),
      heads_(MakeHeads(load, spec)),
      in_proj_(load, model, model.hidden_size, InputSlices(prefix, spec, heads_), false),
      conv_(load, {.name = prefix + "conv1d",
                   .total = 2 * spec.num_key_heads * spec.key_dim + spec.num_value_heads * spec.value_dim,
                   .parts = ConvChannels(spec, heads_),
                   .num_taps = spec.num_taps,
                   .activation = spec.activation}),
      out_proj_(load, model, prefix + "out_proj", model.hidden_size, spec.num_value_heads * spec.value_dim,
                {heads_.values.begin * spec.value_dim, heads_.values.count * spec.value_dim}, false) {
  // GGUF files have -exp(A_log), and other names.
  const bool is_gguf = !load.weights.Contains(prefix + "A_log") && load.weights.Contains(prefix + "A");
  a_ = LoadFloats(load.weights, prefix + (is_gguf ? "A" : "A_log"), spec.num_value_heads, heads_.values);
  if (!is_gguf) {
    for (float& a : a_) a = -std::exp(a);
  }
  dt_bias_ = LoadFloats(load.weights, prefix + (is_gguf ? "dt.bias" : "dt_bias"), spec.num_value_heads, heads_.values);
  norm_weight_ = LoadFloats(load.weights, prefix + "norm.weight", spec.value_dim, {0, spec.value_dim});
  const int64_t values_per_key = spec.num_value_heads / spec.num_key_heads;
  step_.workspace->recurrent.Reserve(
      step_.threads->num_threads(), LinearRecurrenceHeads::ScratchFloats(spec.key_dim, spec.value_dim, values_per_key));
}

RecurrentStateSpec GatedDeltaNet::state() const {
  return {conv_.window_floats(), heads_.values.count, spec_.key_dim * spec_.value_dim};
}

int64_t GatedDeltaNet::scratch_floats(int64_t num_tokens) const {
  return num_tokens * (row_floats() + heads_.values.count * spec_.value_dim);
}

void GatedDeltaNet::Reserve(int64_t max_tokens) const {
  in_proj_.Reserve(max_tokens);
  out_proj_.Reserve(max_tokens);
}

SequenceInputs GatedDeltaNet::Inputs(const RecurrentSequence& sequence, KVCache& cache, const float* rows) const {
  return SequenceInputs(sequence, layer_,
                        {.rows = rows + sequence.first_row * row_floats(),
                         .row_stride = row_floats(),
                         .width = z_offset(),
                         .window = cache.window(layer_, sequence.block_ids),
                         .num_taps = conv_.num_taps(),
                         .num_channels = conv_.num_channels()});
}

void GatedDeltaNet::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                            int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  float* const rows = scratch;
  float* const attended = rows + num_tokens * row_floats();
  const int64_t width = heads_.values.count * spec_.value_dim;
  in_proj_.Forward(x, hidden_size_, num_tokens, rows, row_floats(), lora_slots);
  const int64_t num_keys = num_key_heads();
  step_.threads->ParallelFor(static_cast<int64_t>(sequences.size()) * num_keys, [&](int64_t task, int thread) {
    const RecurrentSequence& sequence = sequences[static_cast<size_t>(task / num_keys)];
    float* const own_scratch = step_.workspace->recurrent.scratch[static_cast<size_t>(thread)].data();
    RunKeyHead(sequence, Inputs(sequence, cache, rows), cache, task % num_keys, own_scratch, attended);
  });
  // The windows and the accepted drafts are inputs of all heads, so they may change only now.
  for (const RecurrentSequence& sequence : sequences) {
    conv_.SaveWindows(sequence, layer_, Inputs(sequence, cache, rows), cache);
    KeepDrafts(sequence, layer_, rows, row_floats(), z_offset());
  }
  ForEachRow(step_, num_tokens, 4 * width, [&](int64_t row) {
    float* const y = attended + row * width;
    float* const z = rows + row * row_floats() + z_offset();
    for (int64_t i = 0; i < width; i += spec_.value_dim) {
      step_.kernels->rms_norm(y + i, norm_weight_.data(), static_cast<float>(spec_.norm_eps), spec_.value_dim, y + i);
    }
    step_.kernels->activation(kernels::Activation::kSilu, z, y, width, y);
  });
  out_proj_.Forward(attended, width, num_tokens, out, lora_slots);
}

void GatedDeltaNet::RunKeyHead(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache,
                               int64_t key, float* scratch, float* attended) const {
  const std::vector<int64_t>& heads = heads_.values_of[static_cast<size_t>(key)];
  const int64_t key_dim = spec_.key_dim, value_dim = spec_.value_dim;
  const int64_t key_floats = num_key_heads() * key_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  const auto prepare = [&](int64_t i, const LinearRecurrenceRow& row) {
    const float* const gates = inputs.Row(i);
    conv_.Row(step_, inputs, i, key * key_dim, key_dim, row.query);
    conv_.Row(step_, inputs, i, key_floats + key * key_dim, key_dim, row.key);
    const kernels::Kernels& kernels = *step_.kernels;
    kernels.scale(row.query, scale / std::sqrt(kernels.sum_of_squares(row.query, key_dim) + kL2NormEps), key_dim);
    kernels.scale(row.key, 1.0f / std::sqrt(kernels.sum_of_squares(row.key, key_dim) + kL2NormEps), key_dim);
    for (size_t h = 0; h < heads.size(); ++h) {
      const int64_t head = heads[h];
      const auto index = static_cast<size_t>(head);
      const auto step = static_cast<int64_t>(h);
      conv_.Row(step_, inputs, i, 2 * key_floats + head * value_dim, value_dim, row.value + step * row.value_step);
      row.decay[step * row.gate_step] = std::exp(a_[index] * Softplus(gates[a_offset() + head] + dt_bias_[index]));
      row.beta[step * row.gate_step] = Sigmoid(gates[b_offset() + head]);
    }
  };
  RunLinearRecurrence(step_, sequence, cache,
                      {.layer = layer_, .heads = heads, .key_dim = key_dim, .value_dim = value_dim, .delta_rule = true},
                      scratch, attended, heads_.values.count * value_dim, prepare);
}

}  // namespace vllm
