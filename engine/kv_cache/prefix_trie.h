// PrefixTrie: the identities of cached prefixes, one node a block of tokens, chained to the node of the block before.
// Two cached blocks stand for the same tokens after the same prefix exactly when their prefix ids are equal, in
// whatever KV-cache group they are: tokens, extra keys and the whole chain are compared, so a hash collision costs time
// and never gives another prompt's contents. A node outlives the blocks of its ancestors, because a sliding window
// forgets the head of a sequence and not its tail. Owned by BlockPool; engine thread only; allocates nothing after
// construction but for extra keys.
//
// Invariant: a node's users are the cached blocks with its id, its children, and the requests whose last published or
// hit block it is. It goes when it has none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/kv_cache/kv_cache_block.h"

namespace vllm {

// What a full block of a request is, apart from its place in memory.
struct PrefixKey {
  BlockHash hash;
  PrefixNodeId parent = kEmptyPrefix;
  std::span<const int32_t> token_ids;  // [block_size]
  std::string_view extra_keys;
};

class PrefixTrie {
 public:
  PrefixTrie(int64_t capacity, int64_t block_size);

  // The node with exactly this key, or kNoPrefix. O(1) on average.
  PrefixNodeId Find(const PrefixKey& key) const;
  // Finds or makes the node and adds a user to it; kNoPrefix when the table is full.
  PrefixNodeId Acquire(const PrefixKey& key, RequestId publisher);
  // REQUIRES: `id` is a node's.
  PrefixNodeId ParentOf(PrefixNodeId id) const { return nodes_[id].parent; }
  // The empty prefix and kNoPrefix may be passed too; nothing happens then.
  void AddRef(PrefixNodeId id);
  void RemoveUser(PrefixNodeId id);

  // The node, and with it all that grew on it, is not found any more.
  void Retire(PrefixNodeId id);
  // Retires what this request was the last to publish. O(capacity).
  void RetirePublishedBy(RequestId publisher);

  int64_t size() const { return size_; }
  // Empty, or what is broken. external_users [capacity + 1]: users of each node that are not its children.
  std::string CheckIntegrity(std::span<const int64_t> external_users) const;
  int64_t capacity() const { return static_cast<int64_t>(nodes_.size()) - 1; }

 private:
  struct Node {
    BlockHash hash;
    PrefixNodeId parent = kEmptyPrefix;
    PrefixNodeId next = kNoPrefix;  // in its bucket, or among the unused
    int32_t num_users = 0;
    bool retired = false;
    bool has_extra_keys = false;
    RequestId publisher = 0;
  };
  size_t BucketIndex(const BlockHash& hash, PrefixNodeId parent) const;
  int32_t* TokensOf(PrefixNodeId id) const { return token_ids_.get() + static_cast<int64_t>(id) * block_size_; }
  std::string_view ExtraKeysOf(PrefixNodeId id) const;
  void Unlink(PrefixNodeId id);

  const int64_t block_size_;
  int64_t size_ = 0;
  std::vector<Node> nodes_;  // [capacity + 1], the first stands for the empty prefix
  std::vector<PrefixNodeId> buckets_;
  std::unique_ptr<int32_t[]> token_ids_;                      // [capacity + 1, block_size]
  std::unordered_map<PrefixNodeId, std::string> extra_keys_;  // of the few nodes that have some
  PrefixNodeId unused_ = kNoPrefix;
};

}  // namespace vllm
