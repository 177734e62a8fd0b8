#include "engine/layers/recurrent/gated_delta_net.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/layers/for_each_row.h"
#include "engine/layers/norm.h"

namespace vllm {

namespace {

// The rows of a key head that a thread processes at a time. Their queries, keys and values stay in L2.
constexpr int64_t kRowsAtOnce = 64;
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
  const int64_t row = 2 * spec.key_dim + values_per_key * (spec.value_dim + 2);
  step_.workspace->recurrent.Reserve(
      step_.threads->num_threads(),
      static_cast<size_t>(row * kRowsAtOnce + values_per_key * spec.key_dim * spec.value_dim));
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
    if (sequence.drafts != nullptr) KeepDrafts(sequence, rows);
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
  const int64_t key_dim = spec_.key_dim, value_dim = spec_.value_dim;
  const std::vector<int64_t>& heads = heads_.values_of[static_cast<size_t>(key)];
  const auto num_heads = static_cast<int64_t>(heads.size());
  float* const queries = scratch;
  float* const keys = queries + kRowsAtOnce * key_dim;
  float* const values = keys + kRowsAtOnce * key_dim;  // [num_heads, kRowsAtOnce, value_dim]
  float* const decays = values + num_heads * kRowsAtOnce * value_dim;
  float* const betas = decays + num_heads * kRowsAtOnce;
  float* const draft_states = betas + num_heads * kRowsAtOnce;  // [num_heads, key_dim, value_dim]
  const auto state_bytes = static_cast<size_t>(key_dim * value_dim) * sizeof(float);
  const int64_t key_floats = num_key_heads() * key_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(key_dim));

  if (sequence.state_position() == 0) {
    for (const int64_t head : heads) std::memset(cache.state(layer_, head, sequence.block_ids), 0, state_bytes);
  }
  const int64_t num_certain = sequence.end_position() - sequence.state_position();
  size_t next_checkpoint = 0;
  for (int64_t begin = 0; begin < inputs.num_rows();) {
    // A run of rows ends where the state is saved, or where the drafts begin.
    int64_t end = std::min(begin + kRowsAtOnce, inputs.num_rows());
    if (begin < num_certain) end = std::min(end, num_certain);
    const bool may_save = next_checkpoint < sequence.checkpoints.size();
    const int64_t save_at =
        may_save ? sequence.checkpoints[next_checkpoint].position - sequence.state_position() : INT64_MAX;
    end = std::min(end, save_at);
    const int64_t count = end - begin;
    for (int64_t i = 0; i < count; ++i) {
      const float* const gates = inputs.Row(begin + i);
      float* const q = queries + i * key_dim;
      float* const k = keys + i * key_dim;
      conv_.Row(step_, inputs, begin + i, key * key_dim, key_dim, q);
      conv_.Row(step_, inputs, begin + i, key_floats + key * key_dim, key_dim, k);
      step_.kernels->scale(q, scale / std::sqrt(step_.kernels->sum_of_squares(q, key_dim) + kL2NormEps), key_dim);
      step_.kernels->scale(k, 1.0f / std::sqrt(step_.kernels->sum_of_squares(k, key_dim) + kL2NormEps), key_dim);
      for (int64_t h = 0; h < num_heads; ++h) {
        const int64_t head = heads[static_cast<size_t>(h)];
        conv_.Row(step_, inputs, begin + i, 2 * key_floats + head * value_dim, value_dim,
                  values + (h * kRowsAtOnce + i) * value_dim);
        const auto index = static_cast<size_t>(head);
        decays[h * kRowsAtOnce + i] = std::exp(a_[index] * Softplus(gates[a_offset() + head] + dt_bias_[index]));
        betas[h * kRowsAtOnce + i] = Sigmoid(gates[b_offset() + head]);
      }
    }
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = heads[static_cast<size_t>(h)];
      float* state = cache.state(layer_, head, sequence.block_ids);
      if (begin >= num_certain) {
        float* const draft_state = draft_states + h * key_dim * value_dim;
        if (begin == num_certain) std::memcpy(draft_state, state, state_bytes);
        state = draft_state;
      }
      kernels::LinearRecurrenceArgs args{.num_rows = count,
                                         .key_dim = key_dim,
                                         .value_dim = value_dim,
                                         .query = queries,
                                         .key = keys,
                                         .key_stride = key_dim,
                                         .value = values + h * kRowsAtOnce * value_dim,
                                         .value_stride = value_dim,
                                         .decay = decays + h * kRowsAtOnce,
                                         .beta = betas + h * kRowsAtOnce,
                                         .gate_stride = 1,
                                         .state = state,
                                         .delta_rule = true};
      // The step does not compute the outputs of accepted drafts again.
      args.out_stride = heads_.values.count * value_dim;
      const int64_t num_old = std::clamp<int64_t>(inputs.num_accepted() - begin, 0, count);
      if (num_old > 0) {
        kernels::LinearRecurrenceArgs old = args;
        old.num_rows = num_old;
        step_.kernels->recurrent->linear_recurrence(old);
        args.num_rows -= num_old;
        args.query += num_old * key_dim;
        args.key += num_old * key_dim;
        args.value += num_old * value_dim;
        args.decay += num_old;
        args.beta += num_old;
      }
      if (args.num_rows == 0) continue;
      const int64_t row = sequence.first_row + begin + num_old - inputs.num_accepted();
      args.out = attended + row * args.out_stride + head * value_dim;
      step_.kernels->recurrent->linear_recurrence(args);
    }
    if (end == save_at) {
      const StateCheckpoint& checkpoint = sequence.checkpoints[next_checkpoint++];
      for (const int64_t head : heads) {
        std::memcpy(cache.state(layer_, head, checkpoint.block_ids), cache.state(layer_, head, sequence.block_ids),
                    state_bytes);
      }
    }
    begin = end;
  }
}

void GatedDeltaNet::KeepDrafts(const RecurrentSequence& sequence, const float* rows) const {
  const int64_t width = z_offset();
  std::vector<std::vector<float>>& layers = sequence.drafts->layers;
  if (layers.size() <= layer_) layers.resize(layer_ + 1);
  std::vector<float>& kept = layers[layer_];
  kept.resize(static_cast<size_t>(sequence.num_drafts * width));
  const int64_t first = sequence.first_row + sequence.num_rows - sequence.num_drafts;
  for (int64_t i = 0; i < sequence.num_drafts; ++i) {
    std::memcpy(kept.data() + i * width, rows + (first + i) * row_floats(), static_cast<size_t>(width) * sizeof(float));
  }
}

}  // namespace vllm
