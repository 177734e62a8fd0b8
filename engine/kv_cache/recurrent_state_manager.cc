#include "engine/kv_cache/recurrent_state_manager.h"

#include <algorithm>

#include "kernels/threading/check.h"

namespace vllm {

RecurrentStateManager::RecurrentStateManager(BlockPool& pool, uint32_t first_group_id, int64_t num_blocks)
    : pool_(pool), first_group_id_(first_group_id), num_blocks_(num_blocks) {
  VLLM_CHECK(num_blocks > 0);
}

bool RecurrentStateManager::IsCached(PrefixNodeId prefix_id) const {
  for (int64_t i = 0; i < num_blocks_; ++i) {
    if (CachedBlock(prefix_id, i) == nullptr) return false;
  }
  return true;
}

bool RecurrentStateManager::IsPlanned(PrefixNodeId prefix_id) const {
  return std::any_of(states_.begin(), states_.end(), [&](const auto& entry) {
    const std::vector<Checkpoint>& planned = entry.second.planned;
    return std::any_of(planned.begin(), planned.end(), [&](const Checkpoint& c) { return c.prefix_id == prefix_id; });
  });
}

size_t RecurrentStateManager::FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids) const {
  for (size_t length = prefix_ids.size(); length > 0; --length) {
    if (IsCached(prefix_ids[length - 1])) return length;
  }
  return 0;
}

void RecurrentStateManager::Allocate(RequestId id, PrefixNodeId prefix_id, int64_t num_other_blocks,
                                     std::vector<BlockCopy>& copies) {
  const auto [it, inserted] = states_.try_emplace(id);
  VLLM_CHECK(inserted && pool_.num_free_blocks() >= num_blocks_);
  State& state = it->second;
  std::vector<KVCacheBlock*> cached;
  if (prefix_id != kEmptyPrefix) {
    const bool has_room = pool_.num_free_blocks() >= 2 * num_blocks_ + num_other_blocks;
    for (int64_t i = 0; i < num_blocks_; ++i) {
      cached.push_back(CachedBlock(prefix_id, i));
      VLLM_CHECK(cached.back() != nullptr);
      pool_.Touch(cached.back());
    }
    if (!has_room) {
      for (KVCacheBlock* block : cached) pool_.Uncache(block);
      state.blocks = std::move(cached);
      return;
    }
  }
  for (int64_t i = 0; i < num_blocks_; ++i) {
    state.blocks.push_back(pool_.GetNewBlock());
    if (!cached.empty()) {
      copies.push_back({cached[static_cast<size_t>(i)]->block_id, state.blocks.back()->block_id});
    }
  }
  // The copies precede all writes of the step, so these blocks may be reused in the same step.
  pool_.FreeBlocks(cached);
}

std::span<KVCacheBlock* const> RecurrentStateManager::Blocks(RequestId id) const {
  const auto it = states_.find(id);
  if (it == states_.end()) return {};
  return it->second.blocks;
}

void RecurrentStateManager::Free(RequestId id) {
  const auto it = states_.find(id);
  if (it == states_.end()) return;
  DropCheckpoints(id);
  pool_.FreeBlocks(it->second.blocks);
  states_.erase(it);
}

const RecurrentStateManager::Checkpoint* RecurrentStateManager::AddCheckpoint(RequestId id, int64_t position,
                                                                              PrefixNodeId prefix_id,
                                                                              bool replaces_last,
                                                                              int64_t num_other_blocks) {
  const auto it = states_.find(id);
  VLLM_CHECK(it != states_.end());
  if (pool_.num_free_blocks() < num_blocks_ + num_other_blocks || IsPlanned(prefix_id) || IsCached(prefix_id)) {
    return nullptr;
  }
  Checkpoint& checkpoint = it->second.planned.emplace_back();
  checkpoint.position = position;
  checkpoint.prefix_id = prefix_id;
  checkpoint.replaces_last = replaces_last;
  pool_.prefix_trie().AddRef(prefix_id);
  for (int64_t i = 0; i < num_blocks_; ++i) checkpoint.blocks.push_back(pool_.GetNewBlock());
  return &checkpoint;
}

void RecurrentStateManager::PublishCheckpoints(RequestId id) {
  const auto it = states_.find(id);
  if (it == states_.end()) return;
  State& state = it->second;
  for (const Checkpoint& checkpoint : state.planned) {
    for (int64_t i = 0; i < num_blocks_; ++i) {
      pool_.CacheFullBlock(checkpoint.blocks[static_cast<size_t>(i)], checkpoint.prefix_id,
                           first_group_id_ + static_cast<uint32_t>(i), id);
    }
    pool_.FreeBlocks(checkpoint.blocks);
    pool_.prefix_trie().Release(checkpoint.prefix_id);
    if (!checkpoint.replaces_last) continue;
    if (state.last_replaceable != kEmptyPrefix) Discard(id, state.last_replaceable);
    state.last_replaceable = checkpoint.prefix_id;
  }
  state.planned.clear();
}

void RecurrentStateManager::DropCheckpoints(RequestId id) {
  const auto it = states_.find(id);
  if (it == states_.end()) return;
  for (const Checkpoint& checkpoint : it->second.planned) {
    pool_.FreeBlocks(checkpoint.blocks);
    pool_.prefix_trie().Release(checkpoint.prefix_id);
  }
  it->second.planned.clear();
}

void RecurrentStateManager::Discard(RequestId id, PrefixNodeId prefix_id) {
  for (int64_t i = 0; i < num_blocks_; ++i) {
    KVCacheBlock* const block = CachedBlock(prefix_id, i);
    if (block != nullptr && block->ref_cnt == 0 && block->publisher == id) pool_.Discard(block);
  }
}

void RecurrentStateManager::CountReferences(std::span<int32_t> refs, std::span<int64_t> prefix_refs) const {
  for (const auto& [id, state] : states_) {
    for (const KVCacheBlock* block : state.blocks) ++refs[static_cast<size_t>(block->block_id)];
    for (const Checkpoint& checkpoint : state.planned) {
      for (const KVCacheBlock* block : checkpoint.blocks) ++refs[static_cast<size_t>(block->block_id)];
      ++prefix_refs[checkpoint.prefix_id];
    }
  }
}

}  // namespace vllm
