#include "engine/layers/attention/mla_attention.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

bool HasSplitMatrices(const LoadContext& load, const std::string& prefix) {
  return !load.weights.Contains(prefix + "kv_b_proj.weight") && load.weights.Contains(prefix + "k_b_proj.weight");
}

// The transpose of W_UK of each head.
HeadRows KeyRows(const LoadContext& load, const std::string& prefix, int64_t num_heads, const MLASpec& spec) {
  if (HasSplitMatrices(load, prefix)) {
    return {.name = prefix + "k_b_proj",
            .num_heads = num_heads,
            .rows_per_head = spec.kv_lora_rank,
            .num_rows = spec.kv_lora_rank,
            .num_columns = spec.qk_nope_head_dim};
  }
  return {.name = prefix + "kv_b_proj",
          .num_heads = num_heads,
          .rows_per_head = spec.qk_nope_head_dim + spec.v_head_dim,
          .num_rows = spec.qk_nope_head_dim,
          .num_columns = spec.kv_lora_rank,
          .transposed = true};
}

// W_UV of each head.
HeadRows ValueRows(const LoadContext& load, const std::string& prefix, int64_t num_heads, const MLASpec& spec) {
  const bool is_split = HasSplitMatrices(load, prefix);
  return {.name = prefix + (is_split ? "v_b_proj" : "kv_b_proj"),
          .num_heads = num_heads,
          .rows_per_head = spec.v_head_dim + (is_split ? 0 : spec.qk_nope_head_dim),
          .first_row = is_split ? 0 : spec.qk_nope_head_dim,
          .num_rows = spec.v_head_dim,
          .num_columns = spec.kv_lora_rank};
}

}  // namespace

MLAAttention::MLAAttention(const LoadContext& load, const ModelConfig& model, size_t kv_layer,
                           const std::string& prefix, const MLASpec& spec)
    : step_(load.step),
      spec_(spec),
      shards_(ShardHeads(model.num_attention_heads, 1, load.step.rank(), load.step.world_size())),
      hidden_size_(model.hidden_size),
      kv_layer_{.num_kv_heads = 1, .head_dim = cached_dim(), .value_dim = spec.kv_lora_rank},
      q_proj_(load, model, spec.q_lora_rank > 0 ? spec.q_lora_rank : model.hidden_size,
              SplitRows(load.step,
                        [&](int rank, int world_size) {
                          const Shard heads = ShardOf(model.num_attention_heads, rank, world_size);
                          return std::vector<OutputSlice>{{prefix + (spec.q_lora_rank > 0 ? "q_b_proj" : "q_proj"),
                                                           model.num_attention_heads * query_dim(),
                                                           {heads.begin * query_dim(), heads.count * query_dim()}}};
                        }),
              false),
      kv_a_proj_(load, model, model.hidden_size, {{prefix + "kv_a_proj_with_mqa", cached_dim(), {0, cached_dim()}}},
                 spec.has_bias),
      kv_a_norm_(load, prefix + "kv_a_layernorm", spec.kv_lora_rank, {.eps = spec.norm_eps}),
      w_uk_(load, model, KeyRows(load, prefix, model.num_attention_heads, spec), shards_.heads),
      w_uv_(load, model, ValueRows(load, prefix, model.num_attention_heads, spec), shards_.heads),
      o_proj_(load, model, prefix + "o_proj", model.hidden_size,
              ShardsOfHeads(model.num_attention_heads, spec.v_head_dim, load.step.world_size()), spec.has_bias),
      attention_(load.step, kv_layer, kv_layer_, num_heads(), static_cast<float>(spec.scale)) {
  if (spec.q_lora_rank == 0) return;
  q_a_proj_.emplace(load, model, model.hidden_size,
                    std::vector<OutputSlice>{{prefix + "q_a_proj", spec.q_lora_rank, {0, spec.q_lora_rank}}},
                    spec.has_bias);
  q_a_norm_.emplace(load, prefix + "q_a_layernorm", spec.q_lora_rank, NormSpec{.eps = spec.norm_eps});
}

void MLAAttention::Reserve(int64_t max_tokens) const {
  if (q_a_proj_) q_a_proj_->Reserve(max_tokens);
  q_proj_.Reserve(max_tokens);
  kv_a_proj_.Reserve(max_tokens);
  o_proj_.Reserve(max_tokens);
}

void MLAAttention::Forward(const AttentionMetadata& metadata, KVCache& cache, const std::vector<RotaryAngles>& tables,
                           const float* x, int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  const int64_t stride = latent_stride();
  float* latent = scratch;
  float* query = latent + num_tokens * stride;
  float* compressed = query + num_tokens * num_heads() * std::max(query_dim(), spec_.v_head_dim);
  float* cached = latent + num_heads() * cached_dim();
  ProjectQueries(x, num_tokens, query, compressed, lora_slots);
  kv_a_proj_.Forward(x, hidden_size_, num_tokens, cached, stride, lora_slots);
  w_uk_.Forward({query, num_heads() * query_dim(), query_dim()}, num_tokens, {latent, stride, cached_dim()});
  NormalizeAndRotate(tables[static_cast<size_t>(spec_.rotary_table)], num_tokens, query, latent);
  // The output replaces the queries.
  attention_.Forward(metadata, cache, latent, cached, nullptr, stride, latent, stride);
  float* attended = query;
  const int64_t attended_size = num_heads() * spec_.v_head_dim;
  w_uv_.Forward({latent, stride, spec_.kv_lora_rank}, num_tokens, {attended, attended_size, spec_.v_head_dim});
  o_proj_.Forward(attended, attended_size, num_tokens, out, lora_slots);
}

void MLAAttention::ProjectQueries(const float* x, int64_t num_tokens, float* query, float* compressed,
                                  const int32_t* lora_slots) const {
  const int64_t rank = spec_.q_lora_rank;
  if (q_a_proj_) {
    q_a_proj_->Forward(x, hidden_size_, num_tokens, compressed, rank, lora_slots);
    q_a_norm_->Forward(compressed, num_tokens, compressed);
  }
  q_proj_.Forward(q_a_proj_ ? compressed : x, q_a_proj_ ? rank : hidden_size_, num_tokens, query,
                  num_heads() * query_dim(), lora_slots);
}

void MLAAttention::NormalizeAndRotate(const RotaryAngles& angles, int64_t num_tokens, const float* query,
                                      float* latent) const {
  const int64_t rank = spec_.kv_lora_rank, stride = latent_stride();
  const auto rotate = spec_.rotates_neighbors ? step_.kernels->rotary_neighbors : step_.kernels->rotary;
  ForEachRow(step_, num_tokens, rank + (num_heads() + 1) * 2 * spec_.qk_rope_head_dim, [&](int64_t row) {
    const float* cos = angles.cos + row * angles.half;
    const float* sin = angles.sin + row * angles.half;
    float* vectors = latent + row * stride;
    for (int64_t head = 0; head < num_heads(); ++head) {
      const float* rope = query + (row * num_heads() + head) * query_dim() + spec_.qk_nope_head_dim;
      float* to = vectors + head * cached_dim() + rank;
      std::copy_n(rope, spec_.qk_rope_head_dim, to);
      rotate(to, cos, sin, angles.half);
    }
    float* cached = vectors + num_heads() * cached_dim();
    kv_a_norm_.Row(cached, cached);
    rotate(cached + rank, cos, sin, angles.half);
  });
}

}  // namespace vllm
