#include "engine/kv_cache/cached_block_map.h"

#include <bit>
#include <cassert>

namespace vllm {

// Twice as many buckets as blocks: chains stay short without ever growing the table.
CachedBlockMap::CachedBlockMap(int64_t max_blocks) : buckets_(std::bit_ceil(static_cast<size_t>(max_blocks) * 2)) {}

size_t CachedBlockMap::IndexOf(const BlockHash& hash, uint32_t group_id) const {
  return static_cast<size_t>(hash.lo + group_id * 0x9e3779b97f4a7c15) & (buckets_.size() - 1);
}

void CachedBlockMap::Insert(KVCacheBlock* block) {
  assert(block->prev_in_bucket == nullptr && block->next_in_bucket == nullptr);
  Bucket& bucket = buckets_[IndexOf(block->block_hash, block->group_id)];
  block->prev_in_bucket = bucket.last;
  (bucket.last == nullptr ? bucket.first : bucket.last->next_in_bucket) = block;
  bucket.last = block;
  ++size_;
}

void CachedBlockMap::Erase(KVCacheBlock* block) {
  Bucket& bucket = buckets_[IndexOf(block->block_hash, block->group_id)];
  (block->prev_in_bucket == nullptr ? bucket.first : block->prev_in_bucket->next_in_bucket) = block->next_in_bucket;
  (block->next_in_bucket == nullptr ? bucket.last : block->next_in_bucket->prev_in_bucket) = block->prev_in_bucket;
  block->prev_in_bucket = nullptr;
  block->next_in_bucket = nullptr;
  --size_;
}

}  // namespace vllm
