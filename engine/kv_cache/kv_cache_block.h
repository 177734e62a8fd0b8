// KVCacheBlock: the bookkeeping of one block of the paged KV cache; its keys and values are with the ranks, under the
// same id. Owned by BlockPool; engine thread only. The free queue and the map of cached blocks run through the blocks
// themselves, so that neither allocates.
#pragma once

#include <cstdint>

#include "engine/request/block_hash.h"
#include "engine/request/request_id.h"

namespace vllm {

// Names a prefix of whole blocks while PrefixTrie knows it.
using PrefixNodeId = uint32_t;
inline constexpr PrefixNodeId kEmptyPrefix = 0;
inline constexpr PrefixNodeId kNoPrefix = 0xffffffff;

struct KVCacheBlock {
  int32_t block_id = 0;
  int32_t ref_cnt = 0;  // requests that have it in their block table
  bool is_null() const { return block_id == 0; }

  // FreeKVCacheBlockQueue's links; null when the block is not in it.
  KVCacheBlock* prev_free_block = nullptr;
  KVCacheBlock* next_free_block = nullptr;

  // What the prefix cache knows of it. The rest is void unless is_cached.
  bool is_cached = false;
  uint32_t group_id = 0;  // KV-cache group: part of the key
  PrefixNodeId prefix_id = kEmptyPrefix;
  RequestId publisher = 0;  // the request that computed it

  // CachedBlockMap's links: the blocks of one bucket.
  KVCacheBlock* prev_in_bucket = nullptr;
  KVCacheBlock* next_in_bucket = nullptr;
};

}  // namespace vllm
