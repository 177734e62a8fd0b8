#include "engine/kv_cache/sliding_window_manager.h"

#include <algorithm>

#include "engine/kv_cache/kv_cache_demand.h"
#include "kernels/threading/check.h"

namespace vllm {

SlidingWindowManager::SlidingWindowManager(BlockPool& pool, uint32_t group_id, int64_t sliding_window,
                                           int64_t max_chunk)
    : SingleTypeKVCacheManager(pool, group_id),
      sliding_window_(sliding_window),
      hit_blocks_((sliding_window - 1 + pool.block_size() - 1) / pool.block_size()),
      peak_blocks_(WindowPeakBlocks(sliding_window, pool.block_size(), max_chunk)) {
  VLLM_CHECK(sliding_window > 0 && max_chunk > 0);
}

void SlidingWindowManager::FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids,
                                               std::vector<KVCacheBlock*>& hit) const {
  hit.assign(prefix_ids.size(), pool_.null_block());
  if (hit_blocks_ == 0) return;
  int64_t run = 0;
  for (size_t i = prefix_ids.size(); i-- > 0;) {
    KVCacheBlock* block = pool_.GetCachedBlock(prefix_ids[i], group_id_);
    if (block == nullptr) {
      run = 0;
      continue;
    }
    hit[i] = block;
    if (++run == hit_blocks_) {
      hit.resize(i + static_cast<size_t>(run));
      return;
    }
  }
  // This run of blocks is shorter than the window, but starts at the first token.
  hit.resize(static_cast<size_t>(run));
}

int64_t SlidingWindowManager::NumSkippedBlocks(int64_t num_computed_tokens) const {
  return vllm::NumSkippedBlocks(sliding_window_, pool_.block_size(), num_computed_tokens);
}

int64_t SlidingWindowManager::PeakBlocks(int64_t num_blocks) const { return std::min(num_blocks, peak_blocks_); }

}  // namespace vllm
