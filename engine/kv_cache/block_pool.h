// BlockPool: every KV block, who is free, and which of them the prefix cache can offer. Block 0 is the null block: it
// is never handed out, never cached and not counted. All KV-cache groups share one pool. Owned by KVCacheManager;
// engine thread only.
//
// A cached block is known by its prefix in the pool's PrefixTrie and by its group.
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
  // num_blocks usable blocks with ids 1..num_blocks; max_prefixes is what the prefix cache can tell apart at a time,
  // evicted ancestors of what it holds included. REQUIRES: all positive.
  BlockPool(int64_t num_blocks, int64_t block_size, bool enable_caching, int64_t max_prefixes);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  int64_t num_blocks() const { return num_blocks_; }
  int64_t block_size() const { return block_size_; }
  bool enable_caching() const { return enable_caching_; }
  int64_t num_free_blocks() const { return free_queue_.num_free_blocks(); }
  int64_t num_cached_blocks() const { return cached_blocks_.size(); }
  // 0..1, the null block not counted.
  double usage() const;
  KVCacheBlock* null_block() { return &blocks_[0]; }
  PrefixTrie& prefixes() { return prefixes_; }
  const PrefixTrie& prefixes() const { return prefixes_; }

  // Takes a block from the front of the free queue, with ref_cnt 1; what it had cached is forgotten.
  // REQUIRES: num_free_blocks() > 0.
  KVCacheBlock* GetNewBlock();

  // One more user of a cached block; if it was free it leaves the free queue.
  void Touch(KVCacheBlock* block);

  // One user less for each block of a request, given in table order; null blocks are passed over. Those without users
  // become free: uncached ones to the front of the queue, cached ones to its end, the tail of the request to be taken
  // first.
  void FreeBlocks(std::span<KVCacheBlock* const> blocks);

  // The first cached block of this prefix and group, or null.
  KVCacheBlock* GetCachedBlock(PrefixNodeId prefix_id, uint32_t group_id) const {
    return cached_blocks_.Find(prefix_id, group_id);
  }

  // Offers a full block to later lookups. A duplicate of a cached block stays a block of its own.
  // REQUIRES: enable_caching, the block is in use and not cached.
  void CacheFullBlock(KVCacheBlock* block, PrefixNodeId prefix_id, uint32_t group_id, RequestId publisher);

  // Hides a cached block that is in use from later lookups. REQUIRES: the block is cached.
  void Uncache(KVCacheBlock* block);

  // Withdraws every block that this request published, in use or not, and what others built on them. O(num_blocks).
  void EvictPublishedBy(RequestId publisher);

  // Forgets all cached contents; false, and nothing done, while any block is in use.
  bool ResetPrefixCache();

  // The block with this id; for tests and integrity checks.
  const KVCacheBlock& block(int32_t block_id) const { return blocks_[static_cast<size_t>(block_id)]; }
  std::vector<const KVCacheBlock*> GetAllFreeBlocks() const { return free_queue_.GetAllFreeBlocks(); }
  // Empty, or which of the pool's invariants is broken. O(num_blocks).
  std::string CheckIntegrity() const;

 private:
  const int64_t num_blocks_;
  const int64_t block_size_;
  const bool enable_caching_;
  std::vector<KVCacheBlock> blocks_;  // [num_blocks + 1]
  FreeKVCacheBlockQueue free_queue_;
  CachedBlockMap cached_blocks_;
  PrefixTrie prefixes_;
};

}  // namespace vllm
