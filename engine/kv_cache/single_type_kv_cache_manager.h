// SingleTypeKVCacheManager: decides, for one KV-cache group and its kind of attention, which blocks a request needs and
// which cached blocks are a hit. vLLM has a class of the same name. KVCacheManager owns and changes the block tables.
// Owned by KVCacheManager; engine thread only.
//
// The tables of a request have the same length in every group. The null block replaces blocks that a group no longer
// needs.
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

  // Returns true if requests free blocks of this group while they run.
  virtual bool slides() const = 0;

  // Sets `hit` to the longest table of cached blocks from which a sequence with these prefixes can continue. Entries
  // that the sequence does not need are the null block.
  virtual void FindLongestCacheHit(std::span<const PrefixNodeId> prefix_ids, std::vector<KVCacheBlock*>& hit) const = 0;

  // Returns the number of leading blocks that no token from position num_computed_tokens on attends to.
  virtual int64_t NumSkippedBlocks(int64_t num_computed_tokens) const = 0;

  // Returns an upper bound on the blocks that a sequence holds at once while it grows to num_blocks blocks. num_blocks
  // does not include the null blocks of a hit.
  virtual int64_t PeakBlocks(int64_t num_blocks) const = 0;

 protected:
  BlockPool& pool_;
  const uint32_t group_id_;
};

// sliding_window: in tokens; 0: full attention. max_chunk: the maximum number of tokens that one step computes for one
// request.
std::unique_ptr<SingleTypeKVCacheManager> MakeSingleTypeManager(BlockPool& pool, uint32_t group_id,
                                                                int64_t sliding_window, int64_t max_chunk);

}  // namespace vllm
