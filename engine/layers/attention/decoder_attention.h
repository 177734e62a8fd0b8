// DecoderAttention: the self-attention of a decoder layer. It computes the q, k and v projections, the norms and
// rotation of q and k, paged attention and the output projection. AttentionSpec holds the differences between model
// families. Heads are split over the ranks. Owned by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/layers/attention/qk_norm.h"
#include "engine/layers/head_shards.h"
#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"

namespace vllm {

// How the checkpoint stores the weights of q, k and v. kSeparate: three matrices. kFused: one matrix with all rows of
// q, then k, then v. kFusedByKVHead: one matrix that holds, for each KV head, the rows of its query heads, its k and
// its v.
enum class QkvLayout : uint8_t { kSeparate, kFused, kFusedByKVHead };

// Tensor names are relative to the layer's prefix.
struct AttentionSpec {
  QkvLayout layout = QkvLayout::kSeparate;
  std::string q_proj = "q_proj";  // kSeparate
  std::string k_proj = "k_proj";
  std::string v_proj = "v_proj";
  std::string qkv_proj = "qkv_proj";  // kFused and kFusedByKVHead
  std::string o_proj = "o_proj";
  bool qkv_bias = false;
  bool o_bias = false;
  // q_proj has, for each head, the rows of its query and then those of a gate: the output of attention is multiplied by
  // sigmoid(gate). kSeparate only.
  bool output_gate = false;
  int64_t head_dim = 0;
  int64_t num_kv_heads = 0;  // on all ranks
  // Index of the layer whose K and V this layer reads; below 0: it has its own. A layer without its own K and V has no
  // k_proj, v_proj and k_norm.
  int64_t kv_source_layer = -1;
  // There is no v_proj: the values are the output of k_proj, without norm and rotation. REQUIRES: kSeparate.
  bool values_are_keys = false;
  bool has_v_norm = false;  // the values of each head are normalized by an RMS norm without weight
  QkNormSpec qk_norm;
  // Index of the RotaryAngles that rotate queries and keys; below 0: no rotation.
  int rotary_table = 0;
  bool rotates_neighbors = false;  // rotates the pairs (2 i, 2 i + 1) instead of (i, i + half)
  double scale = 1.0;              // multiplies the scores
  double softcap = 0.0;            // applied to the scaled scores; 0: none
  double clip_qkv = 0.0;           // queries and keys after their norm, and values, are clamped to [-x, x]; 0: not
  std::string sinks;  // one logit per query head that joins the softmax, [num_attention_heads]; empty: none
  // See position_bias.h. At most one of these.
  std::string relative_bias;  // tensor that all layers share, with its full name; empty: none
  bool alibi = false;
  int64_t sliding_window = 0;  // 0: full attention
  int64_t look_ahead = 0;      // see kernels::AttentionArgs
};

// The rotation angles of a step's positions: cos and sin are [num_tokens, half]. query_scales, [num_tokens], multiply
// the rotated queries; null: none. Borrowed from the model.
struct RotaryAngles {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t half = 0;
  const float* query_scales = nullptr;
};

class DecoderAttention {
 public:
  // `kv_layer` is the index in KVCache of the layer whose K and V this layer reads, and writes if they are its own.
  DecoderAttention(const LoadContext& load, const ModelConfig& model, size_t kv_layer, const std::string& prefix,
                   const AttentionSpec& spec);

  const KVCacheSpec& kv_layer() const { return kv_layer_; }
  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_tokens) const {
    return num_tokens * (row_floats() + q_size_ + qk_norm_.num_sums());
  }
  // Reserves the rank's scratch for Forward with up to `max_tokens` tokens.
  void Reserve(int64_t max_tokens) const {
    qkv_proj_.Reserve(max_tokens);
    o_proj_.Reserve(max_tokens);
  }
  // x, out: [num_tokens, hidden_size]; scratch: [scratch_floats(num_tokens)]; `tables` is indexed by rotary_table;
  // lora_slots: [num_tokens] or null.
  void Forward(const AttentionMetadata& metadata, KVCache& cache, const std::vector<RotaryAngles>& tables,
               const float* x, int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots);

 private:
  // The order of a row of qkv_proj_'s output: queries, keys, values, gates.
  int64_t row_floats() const { return (output_gate_ ? 2 : 1) * q_size_ + 2 * kv_size_; }
  void Clip(int64_t num_tokens, float* qkv) const;
  void Rotate(const RotaryAngles& angles, int64_t num_tokens, float* qkv) const;
  // Fills the values of qkv with the keys if there is no v_proj, and normalizes them.
  void FinishValues(int64_t num_tokens, float* qkv) const;

  const StepContext& step_;
  HeadShards shards_;
  int64_t hidden_size_, head_dim_, q_size_, kv_size_;
  int rotary_table_;
  bool output_gate_;
  bool values_are_keys_;
  bool rotates_neighbors_, norm_after_rotation_;
  float clip_qkv_;
  KVCacheSpec kv_layer_;
  ColumnParallelLinear qkv_proj_;
  GatheredLinear o_proj_;
  QkNorm qk_norm_;
  std::optional<Norm> v_norm_;
  Attention attention_;
};

}  // namespace vllm
