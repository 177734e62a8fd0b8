#include "engine/kv_cache/free_kv_cache_block_queue.h"

#include "kernels/threading/check.h"

namespace vllm {

FreeKVCacheBlockQueue::FreeKVCacheBlockQueue() {
  head_.next_free_block = &tail_;
  tail_.prev_free_block = &head_;
}

KVCacheBlock* FreeKVCacheBlockQueue::PopFront() {
  VLLM_CHECK(num_free_blocks_ > 0);
  KVCacheBlock* block = head_.next_free_block;
  Remove(block);
  return block;
}

void FreeKVCacheBlockQueue::Remove(KVCacheBlock* block) {
  VLLM_CHECK(block->prev_free_block != nullptr && block->next_free_block != nullptr);
  block->prev_free_block->next_free_block = block->next_free_block;
  block->next_free_block->prev_free_block = block->prev_free_block;
  block->prev_free_block = nullptr;
  block->next_free_block = nullptr;
  --num_free_blocks_;
}

void FreeKVCacheBlockQueue::Append(KVCacheBlock* block) { Link(tail_.prev_free_block, block, &tail_); }

void FreeKVCacheBlockQueue::Prepend(KVCacheBlock* block) { Link(&head_, block, head_.next_free_block); }

void FreeKVCacheBlockQueue::Link(KVCacheBlock* before, KVCacheBlock* block, KVCacheBlock* after) {
  VLLM_CHECK(block->prev_free_block == nullptr && block->next_free_block == nullptr);
  before->next_free_block = block;
  block->prev_free_block = before;
  block->next_free_block = after;
  after->prev_free_block = block;
  ++num_free_blocks_;
}

std::vector<const KVCacheBlock*> FreeKVCacheBlockQueue::GetAllFreeBlocks() const {
  std::vector<const KVCacheBlock*> blocks;
  for (const KVCacheBlock* block = head_.next_free_block; block != &tail_; block = block->next_free_block) {
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace vllm
