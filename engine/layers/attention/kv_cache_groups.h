// How a model's layers share the blocks of the KV cache: vLLM's KV-cache groups. Pure functions; any thread.
//
// Layers with the same window form groups with equally many layers. Groups of full attention come first. All groups use
// the same tensors, one per layer of a group. A block id of group g selects that block in every tensor, for the layers
// of g. All groups can therefore take blocks from one pool, and every block has the same number of bytes. For example,
// layers s s f s s s f s, with s sliding and f full:
//
//   tensor 0    tensor 1
//   f (2)       f (6)        group 0, full
//   s (0)       s (4)        group 1, sliding: with three sliding groups, every third sliding layer
//   s (1)       s (5)        group 2
//   s (3)       s (7)        group 3
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm {

// K and V shape of one layer on this rank.
struct KVCacheSpec {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t sliding_window = 0;  // 0: full attention

  kernels::KVCacheLayout Layout(int64_t block_size, kernels::KVDType dtype) const {
    return {dtype, block_size, num_kv_heads, head_dim};
  }
};

// The location of a layer's keys and values.
struct KVLayerPlace {
  size_t group = 0;
  size_t tensor = 0;
};

struct KVCacheGroups {
  std::vector<int64_t> windows;      // [num_groups], 0: full attention
  std::vector<KVLayerPlace> layers;  // [num_layers]
  std::vector<KVCacheSpec> tensors;  // [layers of the largest group]; ignore their sliding_window

  // Returns the bytes of one block: K and V in all tensors.
  int64_t BlockBytes(int64_t block_size, kernels::KVDType dtype) const;
};

// If all layers have the same window, they form one group, even if their heads differ. Layers with different windows
// and different heads also form one group, with window 0: it keeps whole sequences, and only attention applies the
// windows.
KVCacheGroups MakeKVCacheGroups(const std::vector<KVCacheSpec>& layers);

}  // namespace vllm
