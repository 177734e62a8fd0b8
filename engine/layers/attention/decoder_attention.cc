#include "engine/layers/attention/decoder_attention.h"

#include <algorithm>

#include "engine/layers/attention/position_bias.h"
#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

std::vector<OutputSlice> QkvSlices(const ModelConfig& model, const std::string& prefix, const AttentionSpec& spec,
                                   const HeadShards& shards) {
  const int64_t dim = spec.head_dim;
  const int64_t q_total = model.num_attention_heads * dim;
  const int64_t kv_total = spec.num_kv_heads * dim;
  const Shard q{shards.heads.begin * dim, shards.heads.count * dim};
  const Shard kv{shards.kv_heads.begin * dim, shards.kv_heads.count * dim};
  if (spec.output_gate) {
    std::vector<OutputSlice> slices;
    const auto append_heads = [&](int64_t part) {
      for (int64_t head = shards.heads.begin; head < shards.heads.begin + shards.heads.count; ++head) {
        slices.push_back({prefix + spec.q_proj, 2 * q_total, {(2 * head + part) * dim, dim}});
      }
    };
    append_heads(0);
    slices.push_back({prefix + spec.k_proj, kv_total, kv});
    slices.push_back({prefix + spec.v_proj, kv_total, kv});
    append_heads(1);
    return slices;
  }
  if (spec.layout == QkvLayout::kSeparate) {
    std::vector<OutputSlice> separate = {{prefix + spec.q_proj, q_total, q}};
    if (spec.kv_source_layer >= 0) return separate;
    separate.push_back({prefix + spec.k_proj, kv_total, kv});
    if (!spec.values_are_keys) separate.push_back({prefix + spec.v_proj, kv_total, kv});
    return separate;
  }
  const std::string name = prefix + spec.qkv_proj;
  const int64_t total = q_total + 2 * kv_total;
  if (spec.layout == QkvLayout::kFused) {
    return {{name, total, q},
            {name, total, {q_total + kv.begin, kv.count}},
            {name, total, {q_total + kv_total + kv.begin, kv.count}}};
  }
  const int64_t queries = model.num_attention_heads / spec.num_kv_heads;
  const int64_t group = (queries + 2) * dim;
  std::vector<OutputSlice> slices;
  for (int64_t i = 0; i < shards.heads.count; ++i) {
    const int64_t head = shards.heads.begin + i;
    slices.push_back({name, total, {head / queries * group + head % queries * dim, dim}});
  }
  for (const int64_t part : {queries, queries + 1}) {
    for (int64_t i = 0; i < shards.kv_heads.count; ++i) {
      slices.push_back({name, total, {(shards.kv_heads.begin + i) * group + part * dim, dim}});
    }
  }
  return slices;
}

// Returns the sinks of the rank's heads, or an empty vector if the family has none. GGUF files append ".weight" to the
// name.
std::vector<float> LoadSinks(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                             const AttentionSpec& spec, const HeadShards& shards) {
  if (spec.sinks.empty()) return {};
  const std::string name = prefix + spec.sinks;
  return LoadFloats(load.weights, load.weights.Contains(name) ? name : name + ".weight", model.num_attention_heads,
                    shards.heads);
}

// Returns the position bias of the rank's heads, or an empty vector if the family has none.
std::vector<float> LoadPositionBias(const LoadContext& load, const ModelConfig& model, const AttentionSpec& spec,
                                    const HeadShards& shards) {
  const int64_t num_heads = model.num_attention_heads;
  if (!spec.relative_bias.empty()) return LoadRelativeBias(load.weights, spec.relative_bias, num_heads, shards.heads);
  if (!spec.alibi) return {};
  const int64_t longest = std::min(model.max_model_len, load.config.scheduler.max_num_batched_tokens);
  return AlibiBias(num_heads, shards.heads, longest);
}

}  // namespace

DecoderAttention::DecoderAttention(const LoadContext& load, const ModelConfig& model, size_t kv_layer,
                                   const std::string& prefix, const AttentionSpec& spec)
    : step_(load.step),
      shards_(ShardHeads(model.num_attention_heads, spec.num_kv_heads, load.step.rank(), load.step.world_size())),
      hidden_size_(model.hidden_size),
      head_dim_(spec.head_dim),
      q_size_(shards_.heads.count * head_dim_),
      kv_size_(spec.kv_source_layer < 0 ? shards_.kv_heads.count * head_dim_ : 0),
      rotary_table_(spec.rotary_table),
      output_gate_(spec.output_gate),
      values_are_keys_(spec.values_are_keys && spec.kv_source_layer < 0),
      rotates_neighbors_(spec.rotates_neighbors),
      norm_after_rotation_(spec.qk_norm.after_rotation),
      clip_qkv_(static_cast<float>(spec.clip_qkv)),
      kv_layer_{shards_.kv_heads.count, head_dim_, spec.sliding_window, spec.look_ahead},
      qkv_proj_(load, model, model.hidden_size,
                SplitRows(load.step,
                          [&](int rank, int world_size) {
                            return QkvSlices(
                                model, prefix, spec,
                                ShardHeads(model.num_attention_heads, spec.num_kv_heads, rank, world_size));
                          }),
                spec.qkv_bias),
      o_proj_(load, model, prefix + spec.o_proj, model.hidden_size,
              ShardsOfHeads(model.num_attention_heads, head_dim_, load.step.world_size()), spec.o_bias),
      qk_norm_(load, prefix, spec.qk_norm, head_dim_, {model.num_attention_heads, shards_.heads, true},
               spec.kv_source_layer >= 0 ? HeadRange{}
                                         : HeadRange{spec.num_kv_heads, shards_.kv_heads, shards_.first_of_kv_heads}),
      attention_(load.step, kv_layer, kv_layer_, shards_.heads.count, static_cast<float>(spec.scale),
                 static_cast<float>(spec.softcap), LoadSinks(load, model, prefix, spec, shards_),
                 LoadPositionBias(load, model, spec, shards_)) {
  if (spec.has_v_norm && kv_size_ > 0) {
    NormSpec norm = spec.qk_norm.norm;
    norm.has_weight = false;
    v_norm_.emplace(load, "", head_dim_, norm);
  }
}

void DecoderAttention::Forward(const AttentionMetadata& metadata, KVCache& cache,
                               const std::vector<RotaryAngles>& tables, const float* x, int64_t num_tokens,
                               float* scratch, float* out, const int32_t* lora_slots) {
  const int64_t stride = row_floats();
  float* qkv = scratch;
  float* attended = qkv + num_tokens * stride;
  float* sums = attended + num_tokens * q_size_;
  qkv_proj_.Forward(x, hidden_size_, num_tokens, qkv, stride, lora_slots);
  if (values_are_keys_ || v_norm_) FinishValues(num_tokens, qkv);
  if (!norm_after_rotation_) qk_norm_.Forward(qkv, stride, num_tokens, sums);
  if (clip_qkv_ > 0.0f) Clip(num_tokens, qkv);
  if (rotary_table_ >= 0) Rotate(tables[static_cast<size_t>(rotary_table_)], num_tokens, qkv);
  if (norm_after_rotation_) qk_norm_.Forward(qkv, stride, num_tokens, sums);
  const float* keys = kv_size_ > 0 ? qkv + q_size_ : nullptr;
  attention_.Forward(metadata, cache, qkv, keys, qkv + q_size_ + kv_size_, stride, attended, q_size_);
  if (output_gate_) {
    ForEachRow(step_, num_tokens, 4 * q_size_, [&](int64_t row) {
      float* const y = attended + row * q_size_;
      const float* const gates = qkv + row * stride + q_size_ + 2 * kv_size_;
      step_.kernels->activation(kernels::Activation::kSigmoid, gates, y, q_size_, y);
    });
  }
  o_proj_.Forward(attended, q_size_, num_tokens, out, lora_slots);
}

void DecoderAttention::FinishValues(int64_t num_tokens, float* qkv) const {
  const int64_t stride = row_floats();
  ForEachRow(step_, num_tokens, kv_size_, [&](int64_t row) {
    float* keys = qkv + row * stride + q_size_;
    float* values = keys + kv_size_;
    if (values_are_keys_) std::copy_n(keys, kv_size_, values);
    if (!v_norm_) return;
    for (int64_t offset = 0; offset < kv_size_; offset += head_dim_) v_norm_->Row(values + offset, values + offset);
  });
}

void DecoderAttention::Clip(int64_t num_tokens, float* qkv) const {
  const int64_t stride = row_floats(), count = q_size_ + 2 * kv_size_;
  ForEachRow(step_, num_tokens, count, [&](int64_t row) {
    float* x = qkv + row * stride;
    for (int64_t i = 0; i < count; ++i) x[i] = std::clamp(x[i], -clip_qkv_, clip_qkv_);
  });
}

void DecoderAttention::Rotate(const RotaryAngles& angles, int64_t num_tokens, float* qkv) const {
  const int64_t stride = row_floats();
  const auto rotate = rotates_neighbors_ ? step_.kernels->rotary_neighbors : step_.kernels->rotary;
  ForEachRow(step_, num_tokens, q_size_ + kv_size_, [&](int64_t row) {
    const float* cos = angles.cos + row * angles.half;
    const float* sin = angles.sin + row * angles.half;
    // The key heads directly follow the query heads.
    float* heads = qkv + row * stride;
    for (int64_t offset = 0; offset < q_size_ + kv_size_; offset += head_dim_) {
      rotate(heads + offset, cos, sin, angles.half);
    }
    if (angles.query_scales != nullptr) step_.kernels->scale(heads, angles.query_scales[row], q_size_);
  });
}

}  // namespace vllm
