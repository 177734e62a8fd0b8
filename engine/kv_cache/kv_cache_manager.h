// KVCacheManager: which request has which KV blocks. Numbers only, no tensors. Owned by the Scheduler; engine thread
// only. vLLM's KVCacheManager with one full-attention group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/full_attention_manager.h"
#include "engine/request/request.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

// Cached blocks found for a request, not yet touched. Valid until the manager's next call.
struct ComputedBlocks {
  std::span<KVCacheBlock* const> blocks;
  int64_t num_tokens = 0;
};

class KVCacheManager {
 public:
  // REQUIRES: cache.num_blocks and cache.block_size positive. watermark is a share of the blocks.
  KVCacheManager(const CacheConfig& cache, int64_t max_model_len, double watermark = 0.0,
                 BlockHashFunction hash_function = &HashBlockTokens);

  // The longest cached prefix of a request without blocks: full blocks only, and at most num_tokens - 1 tokens, for the
  // last one has to be computed to get logits.
  ComputedBlocks GetComputedBlocks(Request& request);

  // Blocks for num_new_tokens more tokens, after those computed and those just found; false, and nothing changed, when
  // the pool has too few. Publishes every block that these tokens fill. Touching is part of it.
  // REQUIRES: num_new_tokens > 0; `computed` is empty unless the request has no blocks.
  bool AllocateSlots(Request& request, int64_t num_new_tokens) { return Allocate(request, num_new_tokens, {}, 0); }
  struct Admission {
    bool full_sequence_must_fit = true;  // the whole request, not only num_new_tokens, has to fit into free blocks
    bool apply_watermark = false;
  };
  bool AllocateSlots(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                     const Admission& admission);

  // Gives all blocks of the request back; cached ones stay findable.
  void Free(const Request& request) { full_attention_.Free(request.id()); }

  // Counts a lookup of an admitted request; those of resumed requests and of requests that do not read the cache are
  // not counted.
  void RecordPrefixCacheStats(const Request& request, int64_t num_hit_tokens);
  const PrefixCacheStats& prefix_cache_stats() const { return stats_; }

  // Withdraws what a request published, after its results turned out to be no numbers. O(num_blocks).
  void EvictPublishedBy(RequestId request_id) { pool_.EvictPublishedBy(request_id); }
  bool ResetPrefixCache() { return pool_.ResetPrefixCache(); }

  int64_t NumCommonPrefixBlocks(const Request& running) const {
    return full_attention_.NumCommonPrefixBlocks(running.id());
  }
  // The request's block table; empty when it has none.
  std::span<KVCacheBlock* const> Blocks(RequestId request_id) const { return full_attention_.Blocks(request_id); }

  double usage() const { return pool_.usage(); }
  int64_t num_blocks() const { return pool_.num_blocks(); }
  int64_t block_size() const { return pool_.block_size(); }
  int64_t watermark_blocks() const { return watermark_blocks_; }
  int64_t BlocksFor(int64_t num_tokens) const { return (num_tokens + block_size() - 1) / block_size(); }
  const BlockPool& pool() const { return pool_; }
  const FullAttentionManager& full_attention() const { return full_attention_; }

  // Empty, or what is broken: the pool's invariants, or reference counts that no tables explain.
  std::string CheckIntegrity() const;

 private:
  bool Allocate(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed, int64_t watermark_blocks);

  const int64_t max_model_len_;
  BlockPool pool_;
  FullAttentionManager full_attention_;
  const int64_t watermark_blocks_;
  PrefixCacheStats stats_;
  std::vector<KVCacheBlock*> hit_;
};

}  // namespace vllm
