// BlockPool: all KV blocks, the queue of free blocks, and the index of the blocks in the prefix cache. Block 0 is the
// null block, which is never allocated, never cached and not counted. All KV-cache groups share one pool. Owned by
// KVCacheManager; engine thread only.
//
// A cached block is identified by its node in the pool's PrefixTrie and by its KV-cache group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_cache/cached_block_map.h"
#include "engine/kv_cache/free_kv_cache_block_queue.h"
#include "engine/kv_cache/kv_cache_block.h"
#include "engine/kv_cache/prefix_trie.h"

namespace vllm {

class BlockPool {
 public:
  // num_blocks: usable blocks, with ids 1..num_blocks. block_size: tokens per block. max_prefixes: capacity of the
  // PrefixTrie, which also keeps ancestors whose blocks have been evicted. REQUIRES: all three are positive.
  BlockPool(int64_t num_blocks, int64_t block_size, bool enable_caching, int64_t max_prefixes);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  int64_t num_blocks() const { return num_blocks_; }
  int64_t block_size() const { return block_size_; }
  bool enable_caching() const { return enable_caching_; }
  int64_t num_free_blocks() const { return free_queue_.num_free_blocks(); }
  int64_t num_cached_blocks() const { return cached_blocks_.size(); }
  // Returns the fraction of blocks in use, 0..1, without the null block.
  double usage() const;
  KVCacheBlock* null_block() { return &blocks_[0]; }
  PrefixTrie& prefix_trie() { return prefix_trie_; }
  const PrefixTrie& prefix_trie() const { return prefix_trie_; }

  // Pops the block at the front of the free queue, evicts its cached contents and sets its ref_cnt to 1.
  // REQUIRES: num_free_blocks() > 0.
  KVCacheBlock* GetNewBlock();

  // Adds a reference to a cached block. Removes the block from the free queue if it was free.
  void Touch(KVCacheBlock* block);

  // Removes one reference from each of `blocks`, which are blocks of one request in table order. Skips null blocks.
  // Blocks without references become free: uncached blocks go to the front of the queue, cached blocks to the back. In
  // both cases the last of these blocks is reused first.
  void FreeBlocks(std::span<KVCacheBlock* const> blocks);

  // Returns the first cached block of this prefix and group, or null.
  KVCacheBlock* GetCachedBlock(PrefixNodeId prefix_id, uint32_t group_id) const {
    return cached_blocks_.Find(prefix_id, group_id);
  }

  // Publishes a full block: adds it to the prefix cache, where later lookups find it. A duplicate of a cached block
  // remains a separate block. REQUIRES: enable_caching(); the block is in use and not cached.
  void CacheFullBlock(KVCacheBlock* block, PrefixNodeId prefix_id, uint32_t group_id, RequestId publisher);

  // Removes a block from the prefix cache. Does not move a free block within the queue. REQUIRES: the block is cached.
  void Uncache(KVCacheBlock* block);

  // Removes a free block from the prefix cache and moves it to the front of the queue. REQUIRES: the block is free and
  // cached.
  void Discard(KVCacheBlock* block);

  // Removes from the prefix cache every block that this request published, whether it is in use or free. Lookups also
  // no longer find the blocks that other requests computed on top of these. O(num_blocks + max_prefixes).
  void EvictPublishedBy(RequestId publisher);

  // Removes all blocks from the prefix cache. Returns false and does nothing if any block is in use.
  bool ResetPrefixCache();

  // Returns the block with this id. For tests and integrity checks.
  const KVCacheBlock& block(int32_t block_id) const { return blocks_[static_cast<size_t>(block_id)]; }
  std::vector<const KVCacheBlock*> GetAllFreeBlocks() const { return free_queue_.GetAllFreeBlocks(); }
  // Returns the first broken invariant, or an empty string. O(num_blocks).
  std::string CheckIntegrity() const;

 private:
  const int64_t num_blocks_;
  const int64_t block_size_;
  const bool enable_caching_;
  std::vector<KVCacheBlock> blocks_;  // [num_blocks + 1]
  FreeKVCacheBlockQueue free_queue_;
  CachedBlockMap cached_blocks_;
  PrefixTrie prefix_trie_;
};

}  // namespace vllm
