#include "engine/kv_cache/full_attention_manager.h"

#include <algorithm>
#include <cassert>

namespace vllm {

FullAttentionManager::FullAttentionManager(BlockPool& pool, uint32_t group_id, BlockHashFunction hash_function)
    : pool_(pool), group_id_(group_id), hash_function_(hash_function) {
  scratch_.reserve(static_cast<size_t>(pool.block_size()));
}

BlockKey FullAttentionManager::MakeKey(Request& request, int64_t block_index, PrefixId parent) {
  const int64_t block_size = pool_.block_size();
  return {.hash = request.BlockHashes(block_index + 1, block_size, hash_function_).back(),
          .group_id = group_id_,
          .parent_prefix_id = parent,
          .token_ids = request.Tokens(block_index * block_size, block_size, scratch_),
          .extra_keys = request.extra_keys(block_index == 0)};
}

void FullAttentionManager::FindLongestCacheHit(Request& request, int64_t max_length, std::vector<KVCacheBlock*>& hit) {
  PrefixId parent = kEmptyPrefix;
  const int64_t max_blocks = max_length / pool_.block_size();
  for (int64_t i = 0; i < max_blocks; ++i) {
    KVCacheBlock* block = pool_.GetCachedBlock(MakeKey(request, i, parent));
    if (block == nullptr) return;
    hit.push_back(block);
    parent = block->prefix_id;
  }
}

int64_t FullAttentionManager::NumBlocksToAllocate(RequestId request_id, int64_t num_tokens,
                                                  std::span<KVCacheBlock* const> hit) const {
  const int64_t required = (num_tokens + pool_.block_size() - 1) / pool_.block_size();
  const auto held = static_cast<int64_t>(Blocks(request_id).size() + hit.size());
  const auto evictable = std::count_if(hit.begin(), hit.end(), [](const KVCacheBlock* b) { return b->ref_cnt == 0; });
  return std::max<int64_t>(required - held, 0) + evictable;
}

void FullAttentionManager::AddComputedBlocks(RequestId request_id, std::span<KVCacheBlock* const> hit,
                                             int64_t max_blocks) {
  const auto [it, inserted] = tables_.try_emplace(request_id);
  assert(inserted);
  Table& table = it->second;
  table.blocks.reserve(static_cast<size_t>(max_blocks));
  for (KVCacheBlock* block : hit) pool_.Touch(block);
  table.blocks.assign(hit.begin(), hit.end());
  table.num_cached_blocks = static_cast<int64_t>(hit.size());
  if (!hit.empty()) table.last_prefix_id = hit.back()->prefix_id;
}

void FullAttentionManager::AllocateNewBlocks(RequestId request_id, int64_t num_tokens) {
  Table& table = tables_.find(request_id)->second;
  const int64_t required = (num_tokens + pool_.block_size() - 1) / pool_.block_size();
  while (static_cast<int64_t>(table.blocks.size()) < required) table.blocks.push_back(pool_.GetNewBlock());
}

void FullAttentionManager::CacheBlocks(Request& request, int64_t num_tokens) {
  Table& table = tables_.find(request.id())->second;
  const int64_t num_full_blocks = num_tokens / pool_.block_size();
  for (; table.num_cached_blocks < num_full_blocks; ++table.num_cached_blocks) {
    const BlockKey key = MakeKey(request, table.num_cached_blocks, table.last_prefix_id);
    KVCacheBlock* block = table.blocks[static_cast<size_t>(table.num_cached_blocks)];
    table.last_prefix_id = pool_.CacheFullBlock(block, key, request.id());
  }
}

void FullAttentionManager::Free(RequestId request_id) {
  const auto it = tables_.find(request_id);
  if (it == tables_.end()) return;
  pool_.FreeBlocks(it->second.blocks);
  tables_.erase(it);
}

int64_t FullAttentionManager::NumCommonPrefixBlocks(RequestId request_id) const {
  const auto blocks = Blocks(request_id);
  const auto end = std::find_if(blocks.begin(), blocks.end(),
                                [&](const KVCacheBlock* block) { return block->ref_cnt != num_tables(); });
  return end - blocks.begin();
}

std::span<KVCacheBlock* const> FullAttentionManager::Blocks(RequestId request_id) const {
  const auto it = tables_.find(request_id);
  if (it == tables_.end()) return {};
  return it->second.blocks;
}

}  // namespace vllm
