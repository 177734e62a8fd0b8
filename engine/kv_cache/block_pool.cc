#include "engine/kv_cache/block_pool.h"

#include <algorithm>

#include "kernels/threading/check.h"

namespace vllm {

BlockPool::BlockPool(int64_t num_blocks, int64_t block_size, bool enable_caching, int64_t max_prefixes)
    : num_blocks_(num_blocks),
      block_size_(block_size),
      enable_caching_(enable_caching),
      blocks_(static_cast<size_t>(num_blocks) + 1),
      cached_blocks_(enable_caching ? num_blocks : 1),
      prefix_trie_(enable_caching ? max_prefixes : 1, block_size) {
  VLLM_CHECK(num_blocks > 0 && block_size > 0);
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
  // Each uncached block is pushed in front of the one before it, so the last one ends up at the front of the queue.
  for (KVCacheBlock* block : blocks) {
    if (block->is_null()) continue;
    VLLM_CHECK(block->ref_cnt > 0);
    if (--block->ref_cnt == 0 && !block->is_cached) free_queue_.Prepend(block);
  }
  for (size_t i = blocks.size(); i-- > 0;) {
    KVCacheBlock* block = blocks[i];
    if (!block->is_null() && block->ref_cnt == 0 && block->is_cached) free_queue_.Append(block);
  }
}

void BlockPool::CacheFullBlock(KVCacheBlock* block, PrefixNodeId prefix_id, uint32_t group_id, RequestId publisher) {
  VLLM_CHECK(enable_caching_ && block->ref_cnt > 0 && !block->is_cached && !block->is_null());
  block->is_cached = true;
  block->group_id = group_id;
  block->prefix_id = prefix_id;
  block->publisher = publisher;
  prefix_trie_.AddRef(prefix_id);
  cached_blocks_.Insert(block);
}

void BlockPool::EvictPublishedBy(RequestId publisher) {
  for (KVCacheBlock& block : blocks_) {
    if (!block.is_cached || block.publisher != publisher) continue;
    // Blocks computed on top of this one may contain NaN too. Once the node is retired, lookups no longer find them,
    // even if another request publishes the same prefix again.
    prefix_trie_.Retire(block.prefix_id);
    // Free blocks that are not cached belong at the front of the queue.
    if (block.ref_cnt == 0) {
      Discard(&block);
    } else {
      Uncache(&block);
    }
  }
  prefix_trie_.RetirePublishedBy(publisher);
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
  prefix_trie_.Release(block->prefix_id);
}

void BlockPool::Discard(KVCacheBlock* block) {
  Uncache(block);
  free_queue_.Remove(block);
  free_queue_.Prepend(block);
}

std::string BlockPool::CheckIntegrity() const {
  int64_t num_free = 0;
  int64_t num_cached = 0;
  for (const KVCacheBlock& block : blocks_) {
    const std::string name = "block " + std::to_string(block.block_id) + ": ";
    const bool linked = block.prev_free_block != nullptr;
    if (block.ref_cnt < 0) return name + "negative reference count";
    if (linked != (block.ref_cnt == 0)) return name + "membership in the free queue contradicts the reference count";
    if (linked &&
        (block.prev_free_block->next_free_block != &block || block.next_free_block->prev_free_block != &block)) {
      return name + "free queue links broken";
    }
    num_free += linked;
    num_cached += block.is_cached;
    if (block.is_cached && (&block == blocks_.data() || !enable_caching_)) return name + "cached, but must not be";
    if (block.is_cached && !cached_blocks_.Contains(block)) return name + "cached, but not in the cached block map";
  }
  if (num_free != num_free_blocks()) return "free queue: wrong count";
  if (static_cast<int64_t>(GetAllFreeBlocks().size()) != num_free) return "free queue: not all blocks linked";
  if (num_cached != num_cached_blocks()) return "cached block map: wrong count";
  return {};
}

}  // namespace vllm
