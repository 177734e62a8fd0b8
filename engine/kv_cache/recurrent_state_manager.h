// RecurrentStateManager: the blocks that hold recurrent states (RecurrentStateLayout). A request has one state, which
// moves with its tokens. vLLM's MambaManager does this work. Owned by KVCacheManager; engine thread only.
//
// The state of a prefix can be kept in the prefix cache, so that later requests can continue from it. During a step,
// the workers copy a request's state to other blocks when it has reached a chosen position (a checkpoint). After the
// step, these blocks are published and become free: they are reused, least recently used first, like other cached
// blocks. A request that continues from a checkpoint gets a copy.
//
// In the prefix cache, block i of a state belongs to the group first_group_id + i, which holds nothing else. A state
// counts as cached only if all its blocks are.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/kv_cache_block.h"
#include "engine/request/request_id.h"

namespace vllm {

class RecurrentStateManager {
 public:
  // num_blocks: of one state. REQUIRES: num_blocks > 0.
  RecurrentStateManager(BlockPool& pool, uint32_t first_group_id, int64_t num_blocks);

  int64_t num_blocks() const { return num_blocks_; }

  // Returns the length, at most prefix_ids.size(), of the longest of these prefixes whose state is cached; 0: none.
  size_t FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids) const;

  bool HasState(RequestId id) const { return states_.contains(id); }
  // Gives the request blocks for a state. If `prefix_id` is not kEmptyPrefix, they get the cached state of that prefix:
  // appends the copies that the workers must make before the step, or takes the cached blocks themselves if fewer than
  // 2 * num_blocks() + num_other_blocks blocks are free. REQUIRES: at least num_blocks() blocks are free.
  void Allocate(RequestId id, PrefixNodeId prefix_id, int64_t num_other_blocks, std::vector<BlockCopy>& copies);
  // Returns the blocks of the request's state; empty if it has none.
  std::span<KVCacheBlock* const> Blocks(RequestId id) const;
  // Frees the state and the checkpoints that are not published. Does nothing if there are none.
  void Free(RequestId id);

  struct Checkpoint {
    int64_t position = 0;  // in tokens
    PrefixNodeId prefix_id = kEmptyPrefix;
    bool replaces_last = false;  // once it is published, the previous checkpoint with this flag is not needed
    std::vector<KVCacheBlock*> blocks;
  };
  // Plans a checkpoint in the step that is being scheduled. Returns null without doing anything if the state is cached
  // or planned already, or if fewer than num_blocks() + num_other_blocks blocks are free. Valid until the next call.
  const Checkpoint* AddCheckpoint(RequestId id, int64_t position, PrefixNodeId prefix_id, bool replaces_last,
                                  int64_t num_other_blocks);
  // Publishes the request's checkpoints, which the step has filled, and makes their blocks free.
  void PublishCheckpoints(RequestId id);
  // Frees the request's checkpoints, because the step was not completed.
  void DropCheckpoints(RequestId id);

  // Adds to refs [num_blocks of the pool + 1] the references to each block, and to prefix_refs the references to each
  // node that this object holds.
  void CountReferences(std::span<int32_t> refs, std::span<int64_t> prefix_refs) const;

 private:
  struct State {
    std::vector<KVCacheBlock*> blocks;
    std::vector<Checkpoint> planned;
    PrefixNodeId last_replaceable = kEmptyPrefix;  // the prefix of the published checkpoint with replaces_last
  };
  bool IsCached(PrefixNodeId prefix_id) const;
  bool IsPlanned(PrefixNodeId prefix_id) const;
  KVCacheBlock* CachedBlock(PrefixNodeId prefix_id, int64_t index) const {
    return pool_.GetCachedBlock(prefix_id, first_group_id_ + static_cast<uint32_t>(index));
  }
  // Removes a cached state that request `id` published from the prefix cache, and lets its blocks be reused first.
  void Discard(RequestId id, PrefixNodeId prefix_id);

  BlockPool& pool_;
  const uint32_t first_group_id_;
  const int64_t num_blocks_;
  std::unordered_map<RequestId, State> states_;
};

}  // namespace vllm
