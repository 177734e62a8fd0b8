// Attention over the paged KV cache. KVCache holds K and V of all layers and belongs to the rank's Worker.
// AttentionMetadata maps the rows of a step to cache blocks; the rank's ModelRunner fills it once per step for all
// layers. An Attention belongs to its DecoderAttention. All are used on the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/layers/attention/attention_plan.h"
#include "engine/layers/attention/kv_cache_groups.h"
#include "engine/layers/attention/recurrent_state_layout.h"
#include "engine/layers/step_context.h"
#include "kernels/attention.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// The layers of a model that have a KV cache or a recurrent state, on one rank.
struct CachedLayers {
  std::vector<KVCacheSpec> attention = {};
  // The different shapes of K and V of layers whose attention is not causal. They keep nothing between steps.
  std::vector<KVCacheSpec> encoder = {};
  std::vector<RecurrentStateSpec> recurrent = {};

  // Returns the bytes of one block of the cache; 0 if no layer keeps anything between steps.
  int64_t BlockBytes(int64_t block_size, kernels::KVDType dtype) const;
};

// K and V of every layer, in `num_blocks` blocks including the null block. With latent attention, there is only V.
// Layers of different groups share memory. If the model has recurrent state, some of the blocks hold states instead
// (RecurrentStateLayout). The memory of a block is contiguous in that case, and if KVCacheGroups packs blocks.
class KVCache {
 public:
  KVCache() = default;
  // Throws std::bad_alloc. A block takes physical memory only once it is written.
  KVCache(const CachedLayers& layers, int64_t num_blocks, int64_t block_size, kernels::KVDType dtype);

  // `layer` is an index in CachedLayers::attention. With latent attention, key() must not be used.
  void* key(size_t layer) { return places_[layer].key; }
  void* value(size_t layer) { return places_[layer].value; }
  size_t group(size_t layer) const { return groups_.layers[layer].group; }
  const KVCacheGroups& groups() const { return groups_; }
  int64_t block_size() const { return block_size_; }
  kernels::KVDType dtype() const { return dtype_; }
  kernels::KVCacheLayout Layout(size_t layer) const { return places_[layer].layout; }
  int64_t num_blocks() const { return num_blocks_; }

  // The window and the matrices of a recurrent layer, an index in CachedLayers::recurrent. block_ids: the blocks of the
  // state, [state_layout().num_blocks()].
  const RecurrentStateLayout& state_layout() const { return state_layout_; }
  float* window(size_t layer, const int32_t* block_ids) { return At(state_layout_.window(layer), block_ids); }
  float* state(size_t layer, int64_t head, const int32_t* block_ids) {
    return At(state_layout_.head(layer, head), block_ids);
  }

  // Copy a block to or from `payload`, [CachedLayers::BlockBytes(block_size(), dtype())]: K and V of tensor 0, then of
  // tensor 1, and so on. A contiguous block is copied unchanged.
  void CopyBlockOut(int64_t block, std::span<std::byte> payload) const;
  void CopyBlockIn(int64_t block, std::span<const std::byte> payload);

  // Copies one block to another, in all layers.
  void CopyBlock(int32_t from, int32_t to);

 private:
  // Where K and V of a layer begin in block 0.
  struct Place {
    std::byte* key = nullptr;
    std::byte* value = nullptr;
    kernels::KVCacheLayout layout;
  };
  float* At(RecurrentStatePlace place, const int32_t* block_ids) {
    return reinterpret_cast<float*>(buffers_[0].as<std::byte>() + block_ids[place.block] * block_stride_ + place.bytes);
  }
  // Calls f(address, bytes) for each contiguous part of block 0. The same part of the next block follows it.
  template <typename F>
  void ForEachPart(F&& f) const;

  KVCacheGroups groups_;
  RecurrentStateLayout state_layout_;
  std::vector<kernels::AlignedBuffer> buffers_;  // K, if any, and V of each tensor, or one for everything
  std::vector<Place> places_;                    // [number of attention layers]
  int64_t block_stride_ = 0;                     // bytes of a block in the only buffer; 0: there are several
  int64_t block_size_ = 0;
  int64_t num_blocks_ = 0;
  kernels::KVDType dtype_ = kernels::KVDType::kFloat32;
};

// The sequences of a step, with the block tables of one KV-cache group.
struct AttentionGroup {
  std::vector<AttentionSequence> sequences;
  std::vector<int64_t> slot_mapping;  // [num_tokens] block_id * block_size + offset in the block
  AttentionPlan plan;                 // for these sequences
};

struct AttentionMetadata {
  std::vector<AttentionGroup> groups;
  std::vector<kernels::AttentionRow> rows;  // [num_tokens]
  // kernels::AttentionArgs::partials, for one layer at a time. Has capacity for the slots of the largest plan.
  kernels::AlignedBuffer partials;
};

class Attention {
 public:
  // sinks: [num_heads], or empty if there are none. position_bias: [num_heads, an odd number], or empty. See
  // kernels/attention.h.
  Attention(const StepContext& step, size_t layer, const KVCacheSpec& spec, int64_t num_heads, float scale,
            float softcap = 0.0f, std::vector<float> sinks = {}, std::vector<float> position_bias = {});

  // query: [num_tokens, num_heads * head_dim], key and value: [num_tokens, num_kv_heads * head_dim], with rows
  // qkv_stride floats apart. Rotary embedding, if any, is already applied. Stores K and V in `cache`, unless `key` is
  // null because another layer has already stored them for this layer too. Then fills `out`,
  // [num_tokens, num_heads * head_dim], with rows out_stride floats apart. With latent attention, `value` is null and
  // the rows of `out` have num_heads * value_dim floats. If there is one KV head and out_stride is qkv_stride, `out`
  // may be `query`, because every task then reads the queries of its rows before it writes their outputs. Never reads a
  // block whose positions are all outside the window of the sequence's first row, because another request may already
  // own that block.
  void Forward(const AttentionMetadata& metadata, KVCache& cache, const float* query, const float* key,
               const float* value, int64_t qkv_stride, float* out, int64_t out_stride);

 private:
  // Fills the tasks of the AttentionWorkspace. Returns an upper bound on the multiply-adds of all scores.
  int64_t MakeTasks(const AttentionMetadata& metadata, const AttentionGroup& group) const;
  void Run(const kernels::AttentionArgs& args, const std::vector<AttentionStepTask>& tasks, bool use_threads) const;

  const StepContext& step_;
  size_t layer_;
  KVCacheSpec spec_;
  int64_t num_heads_;
  float scale_;
  float softcap_;
  std::vector<float> sinks_, position_bias_;
};

}  // namespace vllm
