// FullAttentionManager: the rules of a KV-cache group whose layers attend to every earlier token. A request keeps all
// its blocks, and a hit is a run of cached blocks that starts at the first token. Owned by KVCacheManager; engine
// thread only.
#pragma once

#include "engine/kv_cache/single_type_kv_cache_manager.h"

namespace vllm {

class FullAttentionManager final : public SingleTypeKVCacheManager {
 public:
  using SingleTypeKVCacheManager::SingleTypeKVCacheManager;

  void FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids, std::vector<KVCacheBlock*>& hit) const override;
  bool slides() const override { return false; }
  int64_t NumSkippedBlocks(int64_t) const override { return 0; }
  int64_t PeakBlocks(int64_t num_blocks) const override { return num_blocks; }
};

}  // namespace vllm
