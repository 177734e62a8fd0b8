// CachedBlockMap: maps a prefix and a KV-cache group to the cached blocks with that key. It is a hash table of fixed
// size, chained through the blocks, so publishing a block does not allocate. Blocks with equal keys are duplicates (for
// example, two requests computed the same prefix at the same time) and are kept in insertion order. Owned by BlockPool;
// engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kv_cache/kv_cache_block.h"

namespace vllm {

class CachedBlockMap {
 public:
  explicit CachedBlockMap(int64_t max_blocks);

  int64_t size() const { return size_; }

  // Returns the first block with this key, or null. O(1) on average.
  KVCacheBlock* Find(PrefixNodeId prefix_id, uint32_t group_id) const;
  bool Contains(const KVCacheBlock& block) const;

  // Adds the block under the key (block->prefix_id, block->group_id). REQUIRES: the block is not in any map.
  void Insert(KVCacheBlock* block);
  // Removes the block. REQUIRES: the block is in this map.
  void Erase(KVCacheBlock* block);

 private:
  struct Bucket {
    KVCacheBlock* first = nullptr;
    KVCacheBlock* last = nullptr;
  };
  size_t IndexOf(PrefixNodeId prefix_id, uint32_t group_id) const;

  std::vector<Bucket> buckets_;  // the size is a power of two
  int64_t size_ = 0;
};

}  // namespace vllm
