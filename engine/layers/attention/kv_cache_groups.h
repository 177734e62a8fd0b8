// How a model's layers share the blocks of the KV cache: vLLM's KV-cache groups. Pure functions; any thread.
//
// Layers of one window form groups of equally many layers, full attention first. All groups use the same tensors, one a
// layer of a group: a block id of group g means its rows of every tensor for the layers of g, so that all groups can
// take their blocks from one pool and each block has the same number of bytes. For example, layers s s f s s s f s with
// s sliding and f full:
//
//   tensor 0    tensor 1
//   f (2)       f (6)        group 0, full
//   s (0)       s (4)        group 1, sliding: layers 0, 3 and so on in steps of the number of sliding groups
//   ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm {

// What one layer keeps of each token on this rank.
struct KVCacheSpec {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t sliding_window = 0;  // 0: full attention

  KVCacheLayout Layout(int64_t block_size, KVDType dtype) const { return {dtype, block_size, num_kv_heads, head_dim}; }
};

// Where a layer's keys and values are.
struct KVLayerPlace {
  size_t group = 0;
  size_t tensor = 0;
};

struct KVCacheGroups {
  std::vector<int64_t> windows;      // [num_groups], 0: full attention
  std::vector<KVLayerPlace> layers;  // [num_layers]
  std::vector<KVCacheSpec> tensors;  // [layers of the largest group]; what lies in them, the window aside

  // Bytes of one block: K and V in all tensors.
  int64_t BlockBytes(int64_t block_size, KVDType dtype) const;
};

// Layers of one window are one group, whatever their heads. So are layers of several windows with different heads: they
// all keep whole sequences, the window being a matter of attention alone.
KVCacheGroups MakeKVCacheGroups(const std::vector<KVCacheSpec>& layers);

}  // namespace vllm
