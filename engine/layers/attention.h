// Attention over the paged KV cache: one layer's K and V, and how a step's rows lie in it.
// AttentionMetadata is made once a step by the ModelRunner and shared by all layers; KvCache belongs to the rank's
// Worker.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/rank_context.h"
#include "kernels/aligned_buffer.h"
#include "kernels/attention.h"

namespace vllm {

// What one layer keeps of each token on this rank.
struct KvLayerSpec {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t sliding_window = 0;  // 0: full attention

  int64_t BlockBytes(int64_t block_size, DType dtype) const {
    return num_kv_heads * block_size * (head_dim + PaddedHeadDim(head_dim)) * static_cast<int64_t>(SizeOf(dtype));
  }
};

// K and V of every layer, `num_blocks` blocks with the null block.
class KvCache {
 public:
  KvCache() = default;
  // Throws std::bad_alloc. Memory is touched only as blocks are used.
  KvCache(const std::vector<KvLayerSpec>& layers, int64_t num_blocks, int64_t block_size, DType dtype);

  void* key(size_t layer) { return keys_[layer].data(); }
  void* value(size_t layer) { return values_[layer].data(); }
  int64_t block_size() const { return block_size_; }
  DType dtype() const { return dtype_; }
  int64_t num_blocks() const { return num_blocks_; }

 private:
  std::vector<AlignedBuffer> keys_, values_;
  int64_t block_size_ = 0;
  int64_t num_blocks_ = 0;
  DType dtype_ = DType::kFloat32;
};

// Rows [first_row, first_row + num_rows) of the step are consecutive tokens of one request.
struct AttentionSequence {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  const int32_t* block_table = nullptr;
};

struct AttentionMetadata {
  std::vector<AttentionSequence> sequences;
  std::vector<int64_t> slot_mapping;  // [num_tokens] block * block_size + offset
};

class Attention {
 public:
  Attention(const RankContext& context, size_t layer, const KvLayerSpec& spec, int64_t num_heads, float scale,
            float softcap = 0.0f);

  // query [num_tokens, num_heads * head_dim] with its stride; key and value [num_tokens, num_kv_heads * head_dim]
  // likewise; all rotated. Stores K and V, then writes out [num_tokens, num_heads * head_dim].
  void Forward(const AttentionMetadata& metadata, KvCache& cache, const float* query, const float* key,
               const float* value, int64_t qkv_stride, float* out, int64_t out_stride);

 private:
  const RankContext& context_;
  size_t layer_;
  KvLayerSpec spec_;
  int64_t num_heads_;
  float scale_;
  float softcap_;
  std::vector<AttentionTask> tasks_;         // reused
  std::vector<std::vector<float>> scratch_;  // a thread
};

}  // namespace vllm
