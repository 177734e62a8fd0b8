// Attention over the paged KV cache. KVCache holds K and V of all layers and belongs to the rank's Worker.
// AttentionMetadata maps the rows of a step to cache blocks; the ModelRunner makes it once per step for all layers.
// Used on the rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/attention/attention_plan.h"
#include "engine/layers/attention/kv_cache_groups.h"
#include "engine/layers/step_context.h"
#include "kernels/attention.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// K and V of every layer, in `num_blocks` blocks including the null block. Layers of different groups share memory.
class KVCache {
 public:
  KVCache() = default;
  // Throws std::bad_alloc. Memory is touched only as blocks are used.
  KVCache(const std::vector<KVCacheSpec>& layers, int64_t num_blocks, int64_t block_size, kernels::KVDType dtype);

  void* key(size_t layer) { return keys_[groups_.layers[layer].tensor].data(); }
  void* value(size_t layer) { return values_[groups_.layers[layer].tensor].data(); }
  size_t group(size_t layer) const { return groups_.layers[layer].group; }
  const KVCacheGroups& groups() const { return groups_; }
  int64_t block_size() const { return block_size_; }
  kernels::KVDType dtype() const { return dtype_; }
  kernels::KVCacheLayout Layout(size_t layer) const;
  int64_t num_blocks() const { return num_blocks_; }

 private:
  KVCacheGroups groups_;
  std::vector<kernels::AlignedBuffer> keys_, values_;  // [tensors]
  int64_t block_size_ = 0;
  int64_t num_blocks_ = 0;
  kernels::KVDType dtype_ = kernels::KVDType::kFloat32;
};

// The step's rows in the blocks of one KV-cache group.
struct AttentionGroup {
  std::vector<AttentionSequence> sequences;
  std::vector<int64_t> slot_mapping;  // [num_tokens] block * block_size + offset
  AttentionPlan plan;                 // for these sequences
};

struct AttentionMetadata {
  std::vector<AttentionGroup> groups;
  std::vector<kernels::AttentionRow> rows;  // [num_tokens]
  // Results of planned partitions, for one layer at a time. Has capacity for the slots of the largest plan.
  kernels::AlignedBuffer partials;
};

class Attention {
 public:
  Attention(const StepContext& step, size_t layer, const KVCacheSpec& spec, int64_t num_heads, float scale,
            float softcap = 0.0f);

  // query is [num_tokens, num_heads * head_dim], key and value are [num_tokens, num_kv_heads * head_dim], all rotated,
  // with rows qkv_stride floats apart. Stores K and V, then writes out [num_tokens, num_heads * head_dim]. Never reads
  // a block whose positions are all outside the window of the sequence's first row: the pool may have given it to
  // another request.
  void Forward(const AttentionMetadata& metadata, KVCache& cache, const float* query, const float* key,
               const float* value, int64_t qkv_stride, float* out, int64_t out_stride);

 private:
  // Fills the workspace's tasks. Returns the number of multiply-adds of all scores.
  int64_t MakeTasks(const AttentionMetadata& metadata, const AttentionGroup& group) const;
  void Run(const kernels::AttentionArgs& args, const std::vector<AttentionStepTask>& tasks, bool use_threads) const;

  const StepContext& step_;
  size_t layer_;
  KVCacheSpec spec_;
  int64_t num_heads_;
  float scale_;
  float softcap_;
};

}  // namespace vllm
