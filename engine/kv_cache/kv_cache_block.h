// KVCacheBlock: the metadata of one block of the paged KV cache. The workers store the block's keys and values under
// the same id. The free queue and the map of cached blocks are linked through the blocks themselves, so adding a block
// to them does not allocate. Owned by BlockPool; engine thread only.
#pragma once

#include <cstdint>

#include "engine/request/block_hash.h"
#include "engine/request/request_id.h"

namespace vllm {

// The id of a node in PrefixTrie. A node represents a full block and the prefix before it.
using PrefixNodeId = uint32_t;
inline constexpr PrefixNodeId kEmptyPrefix = 0;
inline constexpr PrefixNodeId kNoPrefix = 0xffffffff;

struct KVCacheBlock {
  int32_t block_id = 0;
  int32_t ref_cnt = 0;  // number of block tables that contain the block; always 1 for the null block
  bool is_null() const { return block_id == 0; }

  // FreeKVCacheBlockQueue's links; null if the block is not in the queue.
  KVCacheBlock* prev_free_block = nullptr;
  KVCacheBlock* next_free_block = nullptr;

  // State in the prefix cache. group_id, prefix_id and publisher are meaningful only if is_cached.
  bool is_cached = false;
  uint32_t group_id = 0;  // KV-cache group; with prefix_id, the key in CachedBlockMap
  PrefixNodeId prefix_id = kEmptyPrefix;
  RequestId publisher = 0;  // the request that published the block

  // CachedBlockMap's links to the other blocks in the same bucket.
  KVCacheBlock* prev_in_bucket = nullptr;
  KVCacheBlock* next_in_bucket = nullptr;
};

// A full block of a sequence: block `index` of the sequence in one KV-cache group.
struct SequenceBlock {
  uint32_t group = 0;
  int64_t index = 0;
  int32_t block_id = -1;  // -1: it has no memory in the KV cache

  friend bool operator==(const SequenceBlock&, const SequenceBlock&) = default;
};

// The contents of block `from` that the workers copy to block `to`, in all layers.
struct BlockCopy {
  int32_t from = 0;
  int32_t to = 0;

  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

}  // namespace vllm
