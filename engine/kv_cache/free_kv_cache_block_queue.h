// FreeKVCacheBlockQueue: the free blocks, in the order in which they will be reused, as in vLLM's class of the same
// name. It is a list doubly linked through the blocks, so a cached block can leave the middle of the queue in O(1)
// without allocation. Owned by BlockPool; engine thread only.
//
// Invariant 1: a block is in the queue if and only if its ref_cnt is 0 and it is not the null block.
// Invariant 2: from front to back there are uncached blocks, then cached blocks in least-recently-used order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kv_cache/kv_cache_block.h"

namespace vllm {

class FreeKVCacheBlockQueue {
 public:
  FreeKVCacheBlockQueue();
  FreeKVCacheBlockQueue(const FreeKVCacheBlockQueue&) = delete;
  FreeKVCacheBlockQueue& operator=(const FreeKVCacheBlockQueue&) = delete;

  int64_t num_free_blocks() const { return num_free_blocks_; }

  // REQUIRES: num_free_blocks() > 0.
  KVCacheBlock* PopFront();
  // REQUIRES: the block is in the queue.
  void Remove(KVCacheBlock* block);
  // REQUIRES: the block is not in the queue.
  void Append(KVCacheBlock* block);
  // REQUIRES: the block is not in the queue.
  void Prepend(KVCacheBlock* block);

  // Returns the blocks from front to back. For tests and integrity checks. O(num_free_blocks).
  std::vector<const KVCacheBlock*> GetAllFreeBlocks() const;

 private:
  void Link(KVCacheBlock* before, KVCacheBlock* block, KVCacheBlock* after);

  // Sentinels, so that the ends of the list need no special case.
  KVCacheBlock head_;
  KVCacheBlock tail_;
  int64_t num_free_blocks_ = 0;
};

}  // namespace vllm
