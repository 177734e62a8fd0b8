// CachedBlockMap: hash and KV-cache group -> the cached blocks with that key. A hash table chained through the blocks,
// sized once, so that publishing a block allocates nothing. Blocks of one key stand in the order they were inserted.
// Several blocks of one key are duplicates (two requests computed the same prefix at the same time) or collisions; the
// caller tells them apart. Engine thread only.
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

  // The first block with this key for which matches(const KVCacheBlock&) holds, or null. O(1) on average.
  template <typename Matches>
  KVCacheBlock* Find(const BlockHash& hash, uint32_t group_id, Matches matches) const {
    for (KVCacheBlock* block = BucketOf(hash, group_id).first; block != nullptr; block = block->next_in_bucket) {
      if (block->group_id == group_id && block->block_hash == hash && matches(*block)) return block;
    }
    return nullptr;
  }

  // Under block->block_hash and block->group_id. REQUIRES: the block is not in a map.
  void Insert(KVCacheBlock* block);
  // REQUIRES: the block is in this map.
  void Erase(KVCacheBlock* block);

 private:
  struct Bucket {
    KVCacheBlock* first = nullptr;
    KVCacheBlock* last = nullptr;
  };
  size_t IndexOf(const BlockHash& hash, uint32_t group_id) const;
  const Bucket& BucketOf(const BlockHash& hash, uint32_t group_id) const { return buckets_[IndexOf(hash, group_id)]; }

  std::vector<Bucket> buckets_;  // a power of two of them
  int64_t size_ = 0;
};

}  // namespace vllm
