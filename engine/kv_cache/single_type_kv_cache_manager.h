// SingleTypeKVCacheManager: what depends on the kind of attention in one KV-cache group: which blocks of a request are
// needed, and which cached ones are a hit (vLLM's class of that name). It looks at block tables; KVCacheManager owns
// and changes them. Owned by KVCacheManager; engine thread only.
//
// The tables of all groups of a request have the same length. Where a group does not need a block any more, its table
// holds the null block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv_cache/block_pool.h"

namespace vllm {

class SingleTypeKVCacheManager {
 public:
  SingleTypeKVCacheManager(BlockPool& pool, uint32_t group_id) : pool_(pool), group_id_(group_id) {}
  virtual ~SingleTypeKVCacheManager() = default;

  // Whether its requests give blocks back as they go on.
  virtual bool slides() const = 0;

  // Replaces `hit` by the longest table of cached blocks of a sequence of these prefixes from which it can go on; null
  // blocks stand where it needs none.
  virtual void FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids, std::vector<KVCacheBlock*>& hit) const = 0;

  // Leading blocks that no token from position num_computed_tokens on attends to.
  virtual int64_t NumSkippedBlocks(int64_t num_computed_tokens) const = 0;

  // The most blocks that a sequence holds at a time while it grows by num_blocks blocks.
  virtual int64_t PeakBlocks(int64_t num_blocks) const = 0;

 protected:
  BlockPool& pool_;
  const uint32_t group_id_;
};

// sliding_window 0 is full attention. max_chunk: the most tokens that one step computes of one request.
std::unique_ptr<SingleTypeKVCacheManager> MakeSingleTypeManager(BlockPool& pool, uint32_t group_id,
                                                                int64_t sliding_window, int64_t max_chunk);

}  // namespace vllm
