#include "engine/kv_cache/single_type_kv_cache_manager.h"

#include "engine/kv_cache/full_attention_manager.h"
#include "engine/kv_cache/sliding_window_manager.h"

namespace vllm {

std::unique_ptr<SingleTypeKVCacheManager> MakeSingleTypeManager(BlockPool& pool, uint32_t group_id,
                                                                int64_t sliding_window, int64_t max_chunk) {
  if (sliding_window > 0) {
    return std::make_unique<SlidingWindowManager>(pool, group_id, sliding_window, max_chunk);
  }
  return std::make_unique<FullAttentionManager>(pool, group_id);
}

}  // namespace vllm
