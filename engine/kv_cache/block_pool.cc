#include "engine/kv_cache/block_pool.h"

#include <algorithm>
#include <cassert>

namespace vllm {

BlockPool::BlockPool(int64_t num_blocks, int64_t block_size, bool enable_caching)
    : num_blocks_(num_blocks),
      block_size_(block_size),
      enable_caching_(enable_caching),
      blocks_(static_cast<size_t>(num_blocks) + 1),
      cached_blocks_(enable_caching ? num_blocks : 1) {
  assert(num_blocks > 0 && block_size > 0);
  if (enable_caching) {
    // Left uninitialized: pages that no cached block needs are never touched.
    token_ids_.reset(new int32_t[blocks_.size() * static_cast<size_t>(block_size)]);
    extra_keys_.resize(blocks_.size());
  }
  blocks_[0].ref_cnt = 1;
  for (size_t i = 1; i < blocks_.size(); ++i) {
    blocks_[i].block_id = static_cast<int32_t>(i);
    free_queue_.Append(&blocks_[i]);
  }
}

double BlockPool::usage() const {
  return 1.0 - static_cast<double>(num_free_blocks()) / static_cast<double>(num_blocks_);
}

KVCacheBlock* BlockPool::GetNewBlock() {
  KVCacheBlock* block = free_queue_.PopFront();
  if (block->is_cached) Uncache(block);
  block->ref_cnt = 1;
  return block;
}

void BlockPool::Touch(KVCacheBlock* block) {
  if (block->ref_cnt == 0) free_queue_.Remove(block);
  ++block->ref_cnt;
}

void BlockPool::FreeBlocks(std::span<KVCacheBlock* const> blocks) {
  // Each pushed before the one pushed last, so the request's tail comes to the very front.
  for (KVCacheBlock* block : blocks) {
    if (block == null_block()) continue;
    assert(block->ref_cnt > 0);
    if (--block->ref_cnt == 0 && !block->is_cached) free_queue_.Prepend(block);
  }
  for (size_t i = blocks.size(); i-- > 0;) {
    KVCacheBlock* block = blocks[i];
    if (block != null_block() && block->ref_cnt == 0 && block->is_cached) free_queue_.Append(block);
  }
}

KVCacheBlock* BlockPool::GetCachedBlock(const BlockKey& key) const {
  return cached_blocks_.Find(key.hash, key.group_id, [&](const KVCacheBlock& block) { return Matches(block, key); });
}

PrefixId BlockPool::CacheFullBlock(KVCacheBlock* block, const BlockKey& key, RequestId publisher) {
  assert(enable_caching_ && block->ref_cnt > 0 && !block->is_cached && block != null_block());
  assert(static_cast<int64_t>(key.token_ids.size()) == block_size_);
  const KVCacheBlock* duplicate = GetCachedBlock(key);
  block->is_cached = true;
  block->group_id = key.group_id;
  block->block_hash = key.hash;
  block->parent_prefix_id = key.parent_prefix_id;
  block->prefix_id = duplicate != nullptr ? duplicate->prefix_id : next_prefix_id_++;
  block->publisher = publisher;
  std::copy(key.token_ids.begin(), key.token_ids.end(), TokensOf(*block));
  extra_keys_[static_cast<size_t>(block->block_id)] = key.extra_keys;
  cached_blocks_.Insert(block);
  return block->prefix_id;
}

void BlockPool::EvictPublishedBy(RequestId publisher) {
  for (KVCacheBlock& block : blocks_) {
    if (!block.is_cached || block.publisher != publisher) continue;
    Uncache(&block);
    // A free block without contents is taken first.
    if (block.ref_cnt == 0) {
      free_queue_.Remove(&block);
      free_queue_.Prepend(&block);
    }
  }
}

bool BlockPool::ResetPrefixCache() {
  if (num_free_blocks() != num_blocks_) return false;
  for (KVCacheBlock& block : blocks_) {
    if (block.is_cached) Uncache(&block);
  }
  return true;
}

void BlockPool::Uncache(KVCacheBlock* block) {
  cached_blocks_.Erase(block);
  block->is_cached = false;
}

bool BlockPool::Matches(const KVCacheBlock& block, const BlockKey& key) const {
  return block.parent_prefix_id == key.parent_prefix_id &&
         std::equal(key.token_ids.begin(), key.token_ids.end(), TokensOf(block)) &&
         extra_keys_[static_cast<size_t>(block.block_id)] == key.extra_keys;
}

int32_t* BlockPool::TokensOf(const KVCacheBlock& block) const {
  return token_ids_.get() + static_cast<int64_t>(block.block_id) * block_size_;
}

std::string BlockPool::CheckIntegrity() const {
  int64_t num_free = 0;
  int64_t num_cached = 0;
  for (const KVCacheBlock& block : blocks_) {
    const std::string name = "block " + std::to_string(block.block_id) + ": ";
    const bool linked = block.prev_free_block != nullptr;
    if (block.ref_cnt < 0) return name + "negative reference count";
    if (linked != (block.ref_cnt == 0)) return name + "in the free queue though used, or free though not in it";
    if (linked &&
        (block.prev_free_block->next_free_block != &block || block.next_free_block->prev_free_block != &block)) {
      return name + "free queue links broken";
    }
    num_free += linked;
    num_cached += block.is_cached;
    if (block.is_cached && (&block == blocks_.data() || !enable_caching_)) return name + "cached though it must not be";
    const KVCacheBlock* self = !block.is_cached
                                   ? &block
                                   : cached_blocks_.Find(block.block_hash, block.group_id,
                                                         [&](const KVCacheBlock& other) { return &other == &block; });
    if (self != &block) return name + "cached but not found";
  }
  if (num_free != num_free_blocks()) return "free queue: wrong count";
  if (static_cast<int64_t>(GetAllFreeBlocks().size()) != num_free) return "free queue: not all blocks linked";
  if (num_cached != num_cached_blocks()) return "cached block map: wrong count";
  return {};
}

}  // namespace vllm
