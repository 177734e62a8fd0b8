// FullAttentionManager: the block tables of one KV-cache group whose layers attend to every earlier token (vLLM's
// single-type manager). A sliding-window group would be a class beside it with the same members, sharing the BlockPool;
// its group_id keeps their cached blocks apart. Owned by KVCacheManager; engine thread only.
//
// Invariant: a request's table only grows, until Free.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv_cache/block_pool.h"
#include "engine/request/request.h"

namespace vllm {

class FullAttentionManager {
 public:
  FullAttentionManager(BlockPool& pool, uint32_t group_id, BlockHashFunction hash_function);

  // Appends the longest run of cached blocks from the request's first token on, at most max_length tokens.
  void FindLongestCacheHit(Request& request, int64_t max_length, std::vector<KVCacheBlock*>& hit);

  // Free blocks that a table of num_tokens would take, counting hit blocks that are free now: touching takes them too.
  int64_t NumBlocksToAllocate(RequestId request_id, int64_t num_tokens, std::span<KVCacheBlock* const> hit) const;

  // Starts the table with hit blocks, touching each. max_blocks is what the table may grow to.
  void AddComputedBlocks(RequestId request_id, std::span<KVCacheBlock* const> hit, int64_t max_blocks);
  // Extends the table to hold num_tokens. REQUIRES: the pool has the blocks, and the table was started.
  void AllocateNewBlocks(RequestId request_id, int64_t num_tokens);
  // Publishes the full blocks among the first num_tokens that are not yet.
  void CacheBlocks(Request& request, int64_t num_tokens);

  // Gives the table's blocks back and forgets it; unknown requests are ignored.
  void Free(RequestId request_id);

  // Leading blocks of this request that every request with a table shares.
  int64_t NumCommonPrefixBlocks(RequestId request_id) const;
  std::span<KVCacheBlock* const> Blocks(RequestId request_id) const;
  int64_t num_tables() const { return static_cast<int64_t>(tables_.size()); }

  // Calls visit(request_id, span of blocks) for each table.
  template <typename Visit>
  void ForEachTable(Visit visit) const {
    for (const auto& [id, table] : tables_) visit(id, std::span<KVCacheBlock* const>(table.blocks));
  }

 private:
  struct Table {
    std::vector<KVCacheBlock*> blocks;
    int64_t num_cached_blocks = 0;           // leading blocks that are hits or published
    PrefixId last_prefix_id = kEmptyPrefix;  // of block num_cached_blocks - 1
  };
  BlockKey MakeKey(Request& request, int64_t block_index, PrefixId parent);

  BlockPool& pool_;
  const uint32_t group_id_;
  const BlockHashFunction hash_function_;
  std::unordered_map<RequestId, Table> tables_;
  std::vector<int32_t> scratch_;
};

}  // namespace vllm
