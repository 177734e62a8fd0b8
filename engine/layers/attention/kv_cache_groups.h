// Divides the layers of a model into vLLM's KV-cache groups, which share the blocks of one KV cache. Pure functions;
// any thread.
//
// Layers with the same window are divided into groups. Groups with full attention come first. There is one tensor for
// each layer of the largest group, and all groups use these tensors. If group g owns a block, it owns that block in
// every tensor, for its layers. So all groups can take blocks from one pool, and every block has the same number of
// bytes. For example, a model has layers s s f s s s f s, where s is sliding and f is full, and (i) is the index of a
// layer:
//
//   tensor 0    tensor 1
//   f (2)       f (6)        group 0, full
//   s (0)       s (4)        group 1, sliding: with three sliding groups, every third sliding layer
//   s (1)       s (5)        group 2
//   s (3)       s (7)        group 3
//
// If layers with different windows also differ in the number or size of their heads, as in Gemma 4, there are no
// tensors. A block then contains K and V of all layers of its group, one after another, and has as many bytes as the
// largest group needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm {

// The shape of K and V of one layer on this rank.
struct KVCacheSpec {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t sliding_window = 0;  // 0: full attention
  int64_t look_ahead = 0;      // see kernels::AttentionArgs
  int64_t value_dim = 0;       // above 0: latent attention; see KVCacheLayout

  kernels::KVCacheLayout Layout(int64_t block_size, kernels::KVDType dtype) const {
    return {dtype, block_size, num_kv_heads, head_dim, 0, value_dim};
  }
};

// The group that a layer belongs to, and the tensor that holds the layer's K and V. In packed blocks, `tensor` is the
// layer's position in the blocks of its group.
struct KVLayerPlace {
  size_t group = 0;
  size_t tensor = 0;
};

struct KVCacheGroups {
  std::vector<int64_t> windows;      // [num_groups], 0: full attention
  std::vector<KVLayerPlace> layers;  // [num_layers]
  std::vector<KVCacheSpec> tensors;  // [number of layers in the largest group]; sliding_window is unused
  // [num_layers] the shapes of the layers if blocks are packed. `tensors` is then empty. Otherwise this is empty.
  std::vector<KVCacheSpec> packed_layers;

  bool is_packed() const { return !packed_layers.empty(); }
  // Returns the bytes of one block: K and V in all tensors, or of the layers of the largest group.
  int64_t BlockBytes(int64_t block_size, kernels::KVDType dtype) const;
  // Returns where K of a layer begins in a packed block. V follows K. REQUIRES: is_packed().
  int64_t PackedOffset(size_t layer, int64_t block_size, kernels::KVDType dtype) const;
};

// Assigns each layer a group and a tensor. If all layers have the same window, they form one group, even if the number
// or size of their heads differs. If both windows and heads differ, blocks are packed. Without layers, there is one
// group with window 1.
KVCacheGroups MakeKVCacheGroups(const std::vector<KVCacheSpec>& layers);

}  // namespace vllm
