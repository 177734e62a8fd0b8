#include "engine/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <cassert>

namespace vllm {

KVCacheManager::KVCacheManager(const CacheConfig& cache, int64_t max_model_len, double watermark,
                               BlockHashFunction hash_function)
    : max_model_len_(max_model_len),
      pool_(cache.num_blocks, cache.block_size, cache.enable_prefix_caching),
      full_attention_(pool_, 0, hash_function),
      watermark_blocks_(static_cast<int64_t>(watermark * static_cast<double>(cache.num_blocks))) {}

ComputedBlocks KVCacheManager::GetComputedBlocks(Request& request) {
  hit_.clear();
  if (!pool_.enable_caching() || !request.reads_prefix_cache()) return {};
  full_attention_.FindLongestCacheHit(request, request.num_tokens() - 1, hit_);
  return {hit_, static_cast<int64_t>(hit_.size()) * block_size()};
}

bool KVCacheManager::AllocateSlots(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                                   const Admission& admission) {
  const int64_t watermark_blocks = admission.apply_watermark ? watermark_blocks_ : 0;
  if (admission.full_sequence_must_fit) {
    const int64_t num_tokens = std::min(request.num_tokens(), max_model_len_);
    const int64_t required = full_attention_.NumBlocksToAllocate(request.id(), num_tokens, computed.blocks);
    if (required + watermark_blocks > pool_.num_free_blocks()) return false;
  }
  return Allocate(request, num_new_tokens, computed, watermark_blocks);
}

bool KVCacheManager::Allocate(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                              int64_t watermark_blocks) {
  assert(num_new_tokens > 0);
  const int64_t num_tokens = request.num_computed_tokens + computed.num_tokens + num_new_tokens;
  const int64_t num_slots = std::min(num_tokens, max_model_len_);
  const int64_t required = full_attention_.NumBlocksToAllocate(request.id(), num_slots, computed.blocks);
  if (required + watermark_blocks > pool_.num_free_blocks()) return false;

  if (full_attention_.Blocks(request.id()).empty()) {
    const int64_t max_tokens = request.params().max_tokens.value_or(max_model_len_);
    const int64_t max_len =
        std::min(max_model_len_, request.num_prompt_tokens() + std::min(max_tokens, max_model_len_));
    full_attention_.AddComputedBlocks(request.id(), computed.blocks,
                                      std::min(BlocksFor(max_len) + 1, pool_.num_blocks()));
  }
  full_attention_.AllocateNewBlocks(request.id(), num_slots);
  // Draft tokens lie beyond num_tokens(): they may be rejected and are not published.
  if (pool_.enable_caching()) full_attention_.CacheBlocks(request, std::min(num_tokens, request.num_tokens()));
  return true;
}

void KVCacheManager::RecordPrefixCacheStats(const Request& request, int64_t num_hit_tokens) {
  if (!pool_.enable_caching() || !request.reads_prefix_cache() || request.num_preemptions > 0) return;
  ++stats_.requests;
  stats_.queries += request.num_tokens();
  stats_.hits += num_hit_tokens;
}

std::string KVCacheManager::CheckIntegrity() const {
  std::string error = pool_.CheckIntegrity();
  if (!error.empty()) return error;
  std::vector<int32_t> users(static_cast<size_t>(pool_.num_blocks()) + 1);
  users[0] = 1;
  full_attention_.ForEachTable([&](RequestId, std::span<KVCacheBlock* const> blocks) {
    for (const KVCacheBlock* block : blocks) ++users[static_cast<size_t>(block->block_id)];
  });
  for (int32_t id = 0; id <= pool_.num_blocks(); ++id) {
    if (pool_.block(id).ref_cnt != users[static_cast<size_t>(id)]) {
      return "block " + std::to_string(id) + ": reference count is not the number of its users";
    }
  }
  return {};
}

}  // namespace vllm
