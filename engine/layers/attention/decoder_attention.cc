#include "engine/layers/attention/decoder_attention.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

std::vector<OutputSlice> QkvSlices(const ModelConfig& model, const std::string& prefix, const AttentionSpec& spec,
                                   const HeadShards& shards) {
  const int64_t dim = model.head_dim;
  const int64_t q_total = model.num_attention_heads * dim;
  const int64_t kv_total = model.num_key_value_heads * dim;
  const Shard q{shards.heads.begin * dim, shards.heads.count * dim};
  const Shard kv{shards.kv_heads.begin * dim, shards.kv_heads.count * dim};
  if (spec.layout == QkvLayout::kSeparate) {
    return {
        {prefix + spec.q_proj, q_total, q}, {prefix + spec.k_proj, kv_total, kv}, {prefix + spec.v_proj, kv_total, kv}};
  }
  const std::string name = prefix + spec.qkv_proj;
  const int64_t total = q_total + 2 * kv_total;
  if (spec.layout == QkvLayout::kFused) {
    return {{name, total, q},
            {name, total, {q_total + kv.begin, kv.count}},
            {name, total, {q_total + kv_total + kv.begin, kv.count}}};
  }
  const int64_t queries = model.num_attention_heads / model.num_key_value_heads;
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

}  // namespace

DecoderAttention::DecoderAttention(const LoadContext& load, const ModelConfig& model, size_t layer,
                                   const std::string& prefix, const AttentionSpec& spec)
    : step_(load.step),
      shards_(ShardHeads(model, load.step.rank(), load.step.world_size())),
      hidden_size_(model.hidden_size),
      head_dim_(model.head_dim),
      q_size_(shards_.heads.count * model.head_dim),
      kv_size_(shards_.kv_heads.count * model.head_dim),
      rotary_table_(spec.rotary_table),
      rotates_neighbors_(spec.rotates_neighbors),
      norm_after_rotation_(spec.qk_norm.after_rotation),
      clip_qkv_(static_cast<float>(spec.clip_qkv)),
      kv_layer_{shards_.kv_heads.count, model.head_dim, spec.sliding_window},
      qkv_proj_(load, model, model.hidden_size, QkvSlices(model, prefix, spec, shards_), spec.qkv_bias),
      o_proj_(load, model, prefix + spec.o_proj, model.hidden_size, model.num_attention_heads * model.head_dim,
              {shards_.heads.begin * model.head_dim, q_size_}, spec.o_bias),
      qk_norm_(load, prefix, spec.qk_norm, model.head_dim, {model.num_attention_heads, shards_.heads, true},
               {model.num_key_value_heads, shards_.kv_heads, shards_.first_of_kv_heads}),
      attention_(load.step, layer, kv_layer_, shards_.heads.count, static_cast<float>(spec.scale),
                 static_cast<float>(spec.softcap), LoadSinks(load, model, prefix, spec, shards_)) {}

void DecoderAttention::Forward(const AttentionMetadata& metadata, KVCache& cache,
                               const std::vector<RotaryAngles>& tables, const float* x, int64_t num_tokens,
                               float* scratch, float* out, const int32_t* lora_slots) {
  const int64_t stride = q_size_ + 2 * kv_size_;
  float* qkv = scratch;
  float* attended = qkv + num_tokens * stride;
  float* sums = attended + num_tokens * q_size_;
  qkv_proj_.Forward(x, hidden_size_, num_tokens, qkv, stride, lora_slots);
  if (!norm_after_rotation_) qk_norm_.Forward(qkv, stride, num_tokens, sums);
  if (clip_qkv_ > 0.0f) Clip(num_tokens, qkv);
  if (rotary_table_ >= 0) Rotate(tables[static_cast<size_t>(rotary_table_)], num_tokens, qkv);
  if (norm_after_rotation_) qk_norm_.Forward(qkv, stride, num_tokens, sums);
  attention_.Forward(metadata, cache, qkv, qkv + q_size_, qkv + q_size_ + kv_size_, stride, attended, q_size_);
  o_proj_.Forward(attended, q_size_, num_tokens, out, lora_slots);
}

void DecoderAttention::Clip(int64_t num_tokens, float* qkv) const {
  const int64_t stride = q_size_ + 2 * kv_size_;
  ForEachRow(step_, num_tokens, stride, [&](int64_t row) {
    float* x = qkv + row * stride;
    for (int64_t i = 0; i < stride; ++i) x[i] = std::clamp(x[i], -clip_qkv_, clip_qkv_);
  });
}

void DecoderAttention::Rotate(const RotaryAngles& angles, int64_t num_tokens, float* qkv) const {
  const int64_t stride = q_size_ + 2 * kv_size_;
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
