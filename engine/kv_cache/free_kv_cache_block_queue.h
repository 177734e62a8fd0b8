// FreeKVCacheBlockQueue: the blocks nobody uses, in the order in which they will be taken. Doubly linked through the
// blocks, so that a cached block found in the middle leaves in O(1) without allocating. Engine thread only.
//
// Invariant 1: a block is in the queue exactly when its ref_cnt is 0 and it is not the null block.
// Invariant 2: blocks are taken from the front: first those without cached contents, then the least recently used.
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
  void Prepend(KVCacheBlock* block);

  // Front to back; for tests and integrity checks. O(num_free_blocks).
  std::vector<const KVCacheBlock*> GetAllFreeBlocks() const;

 private:
  void Link(KVCacheBlock* before, KVCacheBlock* block, KVCacheBlock* after);

  // Sentinels: no end of the list is special.
  KVCacheBlock head_;
  KVCacheBlock tail_;
  int64_t num_free_blocks_ = 0;
};

}  // namespace vllm
