// KVCacheManager: which request has which KV blocks, in each KV-cache group. Numbers only, no tensors. Owned by the
// Scheduler; engine thread only. vLLM's KVCacheManager and its coordinator of groups.
//
// All groups take their blocks from one pool; a block id means the same bytes in each. A request's tables have the same
// length in every group; in a sliding-window group the null block stands where no later token looks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/single_type_kv_cache_manager.h"
#include "engine/request/request.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

// Cached blocks found for a request, not yet touched. Valid until the manager's next call.
struct ComputedBlocks {
  std::span<const std::vector<KVCacheBlock*>> groups;  // [num_groups], or empty
  int64_t num_tokens = 0;
  PrefixNodeId prefix_id = kEmptyPrefix;  // of these tokens
};

class KVCacheManager {
 public:
  // REQUIRES: cache.num_blocks and cache.block_size positive, at least one group.
  // max_chunk: the most tokens that one step computes of one request; 0: any number.
  KVCacheManager(const CacheConfig& cache, int64_t max_model_len, BlockHashFunction hash_function = &HashBlockTokens,
                 int64_t max_chunk = 0);
  ~KVCacheManager();

  // The longest cached prefix of a request without blocks from which every group can go on: full blocks only, and at
  // most num_tokens - 1 tokens, for the last one has to be computed to get logits.
  ComputedBlocks GetComputedBlocks(Request& request);

  // Blocks for num_new_tokens more tokens, after those computed and those just found; false, and no block taken, when
  // the pool has too few. First gives back what no token from num_computed_tokens on looks at. Publishes every block
  // that these tokens fill. Touching is part of it.
  // REQUIRES: num_new_tokens > 0; `computed` is empty unless the request has no blocks.
  bool AllocateSlots(Request& request, int64_t num_new_tokens) { return Allocate(request, num_new_tokens, {}); }
  struct Admission {
    bool full_sequence_must_fit = true;  // the whole request, not only num_new_tokens, has to fit into free blocks
  };
  bool AllocateSlots(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                     const Admission& admission);

  // Gives all blocks of the request back; cached ones stay findable.
  void Free(const Request& request);

  // Removes from the prefix cache the blocks that the request published for tokens from num_computed_tokens on, because
  // they will not be computed after all. The request keeps them.
  // REQUIRES: num_computed_tokens is at least what was computed when those tokens were allocated.
  void Unpublish(const Request& request, int64_t num_computed_tokens);

  // Counts a lookup of an admitted request; those of resumed requests and of requests that do not read the cache are
  // not counted.
  void RecordPrefixCacheStats(const Request& request, int64_t num_hit_tokens);
  const PrefixCacheStats& prefix_cache_stats() const { return stats_; }

  // Withdraws what a request published, after its results turned out to be no numbers. O(num_blocks).
  void EvictPublishedBy(RequestId request_id) { pool_.EvictPublishedBy(request_id); }
  bool ResetPrefixCache() { return pool_.ResetPrefixCache(); }

  // The request's block table in one group; empty when it has none.
  std::span<KVCacheBlock* const> Blocks(RequestId request_id, size_t group = 0) const;
  size_t num_groups() const { return groups_.size(); }
  // Requests that have tables.
  int64_t num_tables() const { return static_cast<int64_t>(tables_.size()); }

  double usage() const { return pool_.usage(); }
  int64_t num_blocks() const { return pool_.num_blocks(); }
  int64_t block_size() const { return pool_.block_size(); }
  int64_t BlocksFor(int64_t num_tokens) const { return (num_tokens + block_size() - 1) / block_size(); }
  const BlockPool& pool() const { return pool_; }

  // Empty, or what is broken: the pool's invariants, or reference counts that no tables explain.
  std::string CheckIntegrity() const;

 private:
  // A request's blocks.
  struct Tables {
    std::vector<std::vector<KVCacheBlock*>> groups;
    int64_t num_cached_blocks = 0;  // leading blocks that are hits or published
    PrefixNodeId last_prefix_id =
        kEmptyPrefix;  // of block num_cached_blocks - 1; kNoPrefix: nothing is published any more
  };

  bool Allocate(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed);
  // Free blocks that the tokens up to num_slots take now, counting hit blocks that are free: touching takes them too.
  int64_t NumBlocksToAllocate(const Tables* tables, int64_t num_slots, const ComputedBlocks& computed) const;
  // The most free blocks that a sequence of num_tokens will have taken at a time.
  int64_t NumBlocksToReserve(int64_t num_tokens, const ComputedBlocks& computed) const;
  Tables& StartTables(const Request& request, const ComputedBlocks& computed);
  void RemoveSkippedBlocks(Tables& tables, int64_t num_computed_tokens);
  void CacheBlocks(Request& request, Tables& tables, int64_t num_tokens);
  PrefixKey MakeKey(Request& request, int64_t block_index, PrefixNodeId parent);

  const int64_t max_model_len_;
  const BlockHashFunction hash_function_;
  BlockPool pool_;
  std::vector<std::unique_ptr<SingleTypeKVCacheManager>> groups_;
  std::unordered_map<RequestId, Tables> tables_;
  PrefixCacheStats stats_;
  // Of the last lookup.
  std::vector<PrefixNodeId> prefix_ids_;
  std::vector<std::vector<KVCacheBlock*>> hits_;  // [num_groups]
  std::vector<int32_t> scratch_;
};

}  // namespace vllm
