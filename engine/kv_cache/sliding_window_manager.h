// SlidingWindowManager: the rules of a KV-cache group in whose layers a token attends to the last `sliding_window`
// tokens, including itself. A request keeps the blocks that its next token attends to. A hit needs only the cached
// blocks that the first token after the hit attends to. Owned by KVCacheManager; engine thread only.
#pragma once

#include "engine/kv_cache/single_type_kv_cache_manager.h"

namespace vllm {

class SlidingWindowManager final : public SingleTypeKVCacheManager {
 public:
  // REQUIRES: sliding_window and max_chunk are positive.
  SlidingWindowManager(BlockPool& pool, uint32_t group_id, int64_t sliding_window, int64_t max_chunk);

  // The hit ends with the last run of cached blocks that covers a whole window. Without such a run, the hit is the run
  // of cached blocks that starts at the first token.
  void FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids, std::vector<KVCacheBlock*>& hit) const override;
  bool slides() const override { return true; }
  int64_t NumSkippedBlocks(int64_t num_computed_tokens) const override;
  int64_t PeakBlocks(int64_t num_blocks) const override;

 private:
  const int64_t sliding_window_;
  const int64_t hit_blocks_;  // number of blocks that a token at the start of a block attends to, without its own
  const int64_t peak_blocks_;
};

}  // namespace vllm
