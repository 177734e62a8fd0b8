// MLAAttention: multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). The KV cache has one vector per token for
// all heads: a latent vector c of kv_lora_rank elements, followed by the rotated part of the keys. The keys and values
// of a head would be W_UK c and W_UV c. Instead of computing them, queries are multiplied by the transpose of W_UK, and
// the attention-weighted sum of latent vectors by W_UV. All steps do this, in prompts too, so a result does not depend
// on the schedule. Heads are split over the ranks, and every rank has all latent vectors. Owned by a DecoderLayer.
// Built at load, then used by the rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/layers/attention/decoder_attention.h"
#include "engine/layers/attention/head_linear.h"
#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"

namespace vllm {

// The sizes have the names of transformers. The tensors have the names of the Hugging Face checkpoint, except that
// GGUF files have k_b_proj [num_heads * kv_lora_rank, qk_nope_head_dim] and v_b_proj [num_heads * v_head_dim,
// kv_lora_rank] instead of kv_b_proj.
struct MLASpec {
  int64_t q_lora_rank = 0;  // 0: q_proj computes the queries from the hidden states
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  bool has_bias = false;  // q_a_proj, kv_a_proj_with_mqa and o_proj have biases
  bool rotates_neighbors = true;
  int rotary_table = 0;
  double scale = 1.0;  // multiplies the scores
  double norm_eps = 1e-6;
};

class MLAAttention {
 public:
  // `kv_layer` is the layer's index in KVCache.
  MLAAttention(const LoadContext& load, const ModelConfig& model, size_t kv_layer, const std::string& prefix,
               const MLASpec& spec);

  const KVCacheSpec& kv_layer() const { return kv_layer_; }
  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_tokens) const {
    return num_tokens * (latent_stride() + num_heads() * std::max(query_dim(), spec_.v_head_dim) + spec_.q_lora_rank);
  }
  // Reserves the rank's scratch for Forward with up to `max_tokens` tokens.
  void Reserve(int64_t max_tokens) const;
  // x, out: [num_tokens, hidden_size]; scratch: [scratch_floats(num_tokens)]; `tables` is indexed by rotary_table;
  // lora_slots: [num_tokens] or null.
  void Forward(const AttentionMetadata& metadata, KVCache& cache, const std::vector<RotaryAngles>& tables,
               const float* x, int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots);

 private:
  int64_t num_heads() const { return shards_.heads.count; }
  int64_t query_dim() const { return spec_.qk_nope_head_dim + spec_.qk_rope_head_dim; }
  int64_t cached_dim() const { return spec_.kv_lora_rank + spec_.qk_rope_head_dim; }
  // Floats of a row of `latent`: for each head a query for the cached vectors, then the token's cached vector.
  int64_t latent_stride() const { return (num_heads() + 1) * cached_dim(); }
  // Computes the queries of the heads, [num_tokens, num_heads(), query_dim()].
  void ProjectQueries(const float* x, int64_t num_tokens, float* query, float* compressed,
                      const int32_t* lora_slots) const;
  // Normalizes the latent vectors, and rotates the last qk_rope_head_dim elements of cached vectors and queries, which
  // it takes from `query`.
  void NormalizeAndRotate(const RotaryAngles& angles, int64_t num_tokens, const float* query, float* latent) const;

  const StepContext& step_;
  MLASpec spec_;
  HeadShards shards_;
  int64_t hidden_size_;
  KVCacheSpec kv_layer_;
  std::optional<ColumnParallelLinear> q_a_proj_;  // replicated on every rank
  std::optional<Norm> q_a_norm_;
  ColumnParallelLinear q_proj_;     // q_b_proj if there is q_a_proj_
  ColumnParallelLinear kv_a_proj_;  // replicated on every rank
  Norm kv_a_norm_;
  HeadLinear w_uk_;  // the transpose of W_UK: [kv_lora_rank, qk_nope_head_dim]
  HeadLinear w_uv_;  // [v_head_dim, kv_lora_rank]
  GatheredLinear o_proj_;
  Attention attention_;
};

}  // namespace vllm
