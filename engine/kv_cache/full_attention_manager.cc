#include "engine/kv_cache/full_attention_manager.h"

namespace vllm {

void FullAttentionManager::FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids,
                                               std::vector<KVCacheBlock*>& hit) const {
  hit.clear();
  for (const PrefixNodeId prefix_id : prefix_ids) {
    KVCacheBlock* block = pool_.GetCachedBlock(prefix_id, group_id_);
    if (block == nullptr) return;
    hit.push_back(block);
  }
}

}  // namespace vllm
