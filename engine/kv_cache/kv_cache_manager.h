// KVCacheManager: the block tables of all requests, one table per request and KV-cache group. It manages block ids, not
// tensors. It does the work of vLLM's KVCacheManager and KVCacheCoordinator. Owned by the Scheduler; engine thread
// only.
//
// All groups take blocks from one pool, and a block id refers to the same memory in every group. The tables of a
// request have the same length in every group. In a sliding-window group, the null block replaces blocks that no later
// token attends to.
//
// Fork makes two requests share their blocks. Full blocks stay shared. The fork copies a block that is not full before
// it writes to it (copy on write); the other request may write to its free slots meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/recurrent_state_manager.h"
#include "engine/kv_cache/single_type_kv_cache_manager.h"
#include "engine/request/request.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

// The cached blocks found for a request. Holds no references to the blocks. Valid until the next call to the manager.
struct ComputedBlocks {
  std::span<const std::vector<KVCacheBlock*>> groups;  // [num_groups], or empty
  int64_t num_tokens = 0;
  PrefixNodeId prefix_id = kEmptyPrefix;  // the node of the last block
  // The node of the last block of Request::num_known_prefix_tokens.
  PrefixNodeId known_prefix_id = kEmptyPrefix;
};

class KVCacheManager {
 public:
  // max_chunk: the maximum number of tokens that one step computes for one request; 0: unlimited.
  // REQUIRES: cache.num_blocks and cache.block_size are positive; there is at least one group.
  KVCacheManager(const CacheConfig& cache, int64_t max_model_len, BlockHashFunction hash_function = &HashBlockTokens,
                 int64_t max_chunk = 0);
  ~KVCacheManager();

  // Returns the longest cached prefix of the request from which every group can continue. It consists of full blocks
  // and has at most num_tokens - 1 tokens, because the last token must be computed to get logits. Returns an empty
  // prefix without prefix caching, or if the request does not read the cache. REQUIRES: the request has no blocks.
  ComputedBlocks GetComputedBlocks(Request& request);

  // Allocates blocks for num_new_tokens more tokens, after the request's computed tokens and those in `computed`. First
  // frees the request's blocks that no token from position num_computed_tokens on attends to. If the pool then has too
  // few free blocks, returns false and allocates nothing. On success, adds references to the hit blocks and, with
  // prefix caching, publishes the blocks that known new tokens fill, unless the prefix trie is full.
  // REQUIRES: num_new_tokens > 0; `computed` is empty if the request already has blocks.
  bool AllocateSlots(Request& request, int64_t num_new_tokens) { return Allocate(request, num_new_tokens, {}); }
  struct Admission {
    bool full_sequence_must_fit = true;  // the whole request, not only num_new_tokens, must fit into free blocks
    int64_t num_extra_blocks = 0;        // blocks that must also be free if full_sequence_must_fit
  };
  bool AllocateSlots(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                     const Admission& admission);

  // Gives `child` the block tables of `parent` for the first num_tokens tokens, which the parent has computed.
  // AllocateSlots then replaces the child's last block, if it is not full, with a copy. Allocates no blocks.
  // REQUIRES: the child has no blocks; its first num_tokens tokens are the parent's; 0 < num_tokens.
  void Fork(const Request& parent, const Request& child, int64_t num_tokens);

  // Appends the copies that AllocateSlots has made necessary since the last call, in the order in which the workers
  // must make them, before they compute tokens. If a request loses its blocks before that, its copies do no harm.
  void TakeBlockCopies(std::vector<BlockCopy>& copies);

  // With prefix caching, publishes the full blocks of the request's computed tokens that are not published, because
  // AllocateSlots did not know their tokens. Ignores the last token, which is not computed without drafts either. The
  // request may have finished.
  void PublishComputed(Request& request);

  // Returns the full blocks of the request's first num_tokens tokens that a lookup for the request would find in the
  // prefix cache, or equal blocks, by index and group. Without those that a sliding window has passed. Valid until the
  // next call.
  std::span<const SequenceBlock> PublishedBlocks(Request& request, int64_t num_tokens);

  // Lets AllocateSlots call `listener` with the published blocks that a sliding window has passed, before it frees
  // them. Their KV is computed, and stays until the next step runs.
  using SkipListener = std::function<void(Request& request, std::span<const SequenceBlock> blocks)>;
  void SetSkipListener(SkipListener listener) { skip_listener_ = std::move(listener); }

  // Publishes blocks of the request that another source has, sorted by index; block_id is ignored. For each one that
  // the prefix cache lacks, takes a free block and calls copy(i, block_id) to fill it with blocks[i]. Stops early if no
  // block is free, or if a block before first_block is not cached. All of them are free afterwards, and reused last.
  // Returns the number of indices for which it filled a block. REQUIRES: the request has the tokens of the blocks.
  int64_t InsertLoadedBlocks(Request& request, int64_t first_block, std::span<const SequenceBlock> blocks,
                             const std::function<void(size_t i, int32_t block_id)>& copy);

  // Returns true if the whole request, with this hit, and num_extra_blocks more fit into the free blocks.
  bool FullSequenceFits(const Request& request, const ComputedBlocks& computed, int64_t num_extra_blocks) const;

  // The recurrent states, or null if the model has none.
  bool has_recurrent_state() const { return states_ != nullptr; }
  // Returns the blocks of the request's recurrent state; empty if it has none.
  std::span<KVCacheBlock* const> StateBlocks(RequestId request_id) const {
    return states_ == nullptr ? std::span<KVCacheBlock* const>() : states_->Blocks(request_id);
  }
  // Returns the node of the request's first `position` tokens, or kNoPrefix if they are not all published. REQUIRES:
  // `position` is a multiple of the block size; the request has blocks.
  PrefixNodeId PrefixOf(const Request& request, int64_t position) const;
  // Plans the checkpoints of the request's recurrent state in the step that is being scheduled, which computes the
  // tokens (begin, end], drafts excepted. Calls add(checkpoint) for each, by ascending position. A checkpoint takes
  // only blocks beyond the num_other_blocks that must stay free. REQUIRES: AllocateSlots has succeeded for these
  // tokens.
  void PlanCheckpoints(const Request& request, int64_t begin, int64_t end, int64_t num_other_blocks,
                       const std::function<void(const RecurrentStateManager::Checkpoint& checkpoint)>& add);
  // Publishes the checkpoints of the step, which has been computed.
  void PublishCheckpoints(RequestId request_id) {
    if (states_ != nullptr) states_->PublishCheckpoints(request_id);
  }

  // Frees all blocks of the request. Its cached blocks stay in the prefix cache.
  void Free(const Request& request);

  // Removes from the prefix cache the blocks that the request published for tokens from position num_computed_tokens
  // on, because those tokens will not be computed. The request keeps the blocks.
  // REQUIRES: num_computed_tokens is at least what request.num_computed_tokens was when these blocks were allocated.
  void Unpublish(const Request& request, int64_t num_computed_tokens);

  // Counts the lookup of an admitted request. Ignores resumed requests and requests that do not read the cache.
  void RecordPrefixCacheStats(const Request& request, int64_t num_hit_tokens);
  const PrefixCacheStats& prefix_cache_stats() const { return stats_; }

  // Removes from the prefix cache the blocks published by a request that failed while it ran; see BlockPool.
  void EvictPublishedBy(RequestId request_id) { pool_.EvictPublishedBy(request_id); }
  // Empties the prefix cache. Returns false and does nothing if any block is in use.
  bool ResetPrefixCache() { return pool_.ResetPrefixCache(); }

  // Returns the request's block table in one group; empty if it has none.
  std::span<KVCacheBlock* const> Blocks(RequestId request_id, size_t group = 0) const;
  size_t num_groups() const { return groups_.size(); }
  // Returns the number of requests that have block tables.
  int64_t num_tables() const { return static_cast<int64_t>(tables_.size()); }

  double usage() const { return pool_.usage(); }
  int64_t num_blocks() const { return pool_.num_blocks(); }
  int64_t block_size() const { return pool_.block_size(); }
  int64_t BlocksFor(int64_t num_tokens) const { return (num_tokens + block_size() - 1) / block_size(); }
  const BlockPool& pool() const { return pool_; }

  // Returns the first broken invariant, or an empty string. Compares all reference counts with the block tables.
  std::string CheckIntegrity() const;

 private:
  // The block tables of one request.
  struct Tables {
    std::vector<std::vector<KVCacheBlock*>> groups;  // [num_groups, num_blocks]
    int64_t num_cached_blocks = 0;                   // leading blocks that are hits or published
    // The node of block num_cached_blocks - 1. kNoPrefix: the trie was full, and the request publishes no more blocks.
    PrefixNodeId last_prefix_id = kEmptyPrefix;
    bool must_copy_last = false;  // the last block is another request's, see Fork
  };

  bool Allocate(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed);
  // Returns the number of free blocks needed now so that the tables cover the first num_slots tokens. Includes hit
  // blocks that are free, because a reference removes them from the free queue.
  int64_t NumBlocksToAllocate(const Tables* tables, int64_t num_slots, const ComputedBlocks& computed) const;
  // Returns an upper bound on the free blocks that a sequence needs at once while it grows to num_tokens tokens.
  int64_t NumBlocksToReserve(int64_t num_tokens, const ComputedBlocks& computed) const;
  Tables& StartTables(const Request& request, const ComputedBlocks& computed);
  // Replaces the last block of a fork in every group with a copy.
  void CopyLastBlock(Tables& tables);
  void RemoveSkippedBlocks(Request& request, Tables& tables);
  // Returns the positions in (begin, end] whose state is worth keeping, ascending.
  void ChooseCheckpoints(const Request& request, int64_t begin, int64_t end, std::vector<int64_t>& positions) const;
  void CacheBlocks(Request& request, Tables& tables, int64_t num_tokens);
  PrefixKey MakeKey(Request& request, int64_t block_index, PrefixNodeId parent);

  const int64_t max_model_len_;
  const BlockHashFunction hash_function_;
  BlockPool pool_;
  std::vector<std::unique_ptr<SingleTypeKVCacheManager>> groups_;
  std::unique_ptr<RecurrentStateManager> states_;  // null: the model has no recurrent state
  std::unordered_map<RequestId, Tables> tables_;
  PrefixCacheStats stats_;
  std::vector<BlockCopy> block_copies_;
  SkipListener skip_listener_;
  std::vector<SequenceBlock> sequence_blocks_;  // the result of PublishedBlocks, or the skipped blocks
  // prefix_ids_ and hits_ are results of the last lookup.
  std::vector<PrefixNodeId> prefix_ids_;
  std::vector<std::vector<KVCacheBlock*>> hits_;  // [num_groups]
  std::vector<int32_t> scratch_;
  std::vector<int64_t> checkpoint_positions_;
};

}  // namespace vllm
