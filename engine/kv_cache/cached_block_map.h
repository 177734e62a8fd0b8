// CachedBlockMap: prefix and KV-cache group -> the cached blocks with that key. A hash table chained through the
// blocks, sized once, so that publishing a block allocates nothing. Several blocks of one key are duplicates (two
// requests computed the same prefix at the same time); they stand in the order they were inserted. Engine thread only.
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

  // The first block with this key, or null. O(1) on average.
  KVCacheBlock* Find(PrefixNodeId prefix_id, uint32_t group_id) const;
  bool Contains(const KVCacheBlock& block) const;

  // Under block->prefix_id and block->group_id. REQUIRES: the block is not in a map.
  void Insert(KVCacheBlock* block);
  // REQUIRES: the block is in this map.
  void Erase(KVCacheBlock* block);

 private:
  struct Bucket {
    KVCacheBlock* first = nullptr;
    KVCacheBlock* last = nullptr;
  };
  size_t IndexOf(PrefixNodeId prefix_id, uint32_t group_id) const;

  std::vector<Bucket> buckets_;  // a power of two of them
  int64_t size_ = 0;
};

}  // namespace vllm
