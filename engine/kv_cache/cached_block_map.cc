#include "engine/kv_cache/cached_block_map.h"

#include <bit>

#include "kernels/threading/check.h"

namespace vllm {

// There are at least twice as many buckets as blocks, so chains stay short and the table never has to grow.
CachedBlockMap::CachedBlockMap(int64_t max_blocks) : buckets_(std::bit_ceil(static_cast<size_t>(max_blocks) * 2)) {}

size_t CachedBlockMap::IndexOf(PrefixNodeId prefix_id, uint32_t group_id) const {
  // Prefix ids are small and dense. Without an offset per group, all groups' blocks of a prefix would share a bucket.
  return static_cast<size_t>(prefix_id + group_id * 0x9e3779b97f4a7c15) & (buckets_.size() - 1);
}

KVCacheBlock* CachedBlockMap::Find(PrefixNodeId prefix_id, uint32_t group_id) const {
  for (KVCacheBlock* block = buckets_[IndexOf(prefix_id, group_id)].first; block != nullptr;
       block = block->next_in_bucket) {
    if (block->prefix_id == prefix_id && block->group_id == group_id) return block;
  }
  return nullptr;
}

bool CachedBlockMap::Contains(const KVCacheBlock& block) const {
  const KVCacheBlock* other = buckets_[IndexOf(block.prefix_id, block.group_id)].first;
  while (other != nullptr && other != &block) other = other->next_in_bucket;
  return other != nullptr;
}

void CachedBlockMap::Insert(KVCacheBlock* block) {
  VLLM_CHECK(block->prev_in_bucket == nullptr && block->next_in_bucket == nullptr);
  Bucket& bucket = buckets_[IndexOf(block->prefix_id, block->group_id)];
  block->prev_in_bucket = bucket.last;
  (bucket.last == nullptr ? bucket.first : bucket.last->next_in_bucket) = block;
  bucket.last = block;
  ++size_;
}

void CachedBlockMap::Erase(KVCacheBlock* block) {
  Bucket& bucket = buckets_[IndexOf(block->prefix_id, block->group_id)];
  (block->prev_in_bucket == nullptr ? bucket.first : block->prev_in_bucket->next_in_bucket) = block->next_in_bucket;
  (block->next_in_bucket == nullptr ? bucket.last : block->next_in_bucket->prev_in_bucket) = block->prev_in_bucket;
  block->prev_in_bucket = nullptr;
  block->next_in_bucket = nullptr;
  --size_;
}

}  // namespace vllm
