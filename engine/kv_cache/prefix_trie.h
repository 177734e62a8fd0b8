// PrefixTrie: a tree of cached prefixes. A node represents one block of tokens; its parent represents the preceding
// block. Cached blocks with the same node id, in any KV-cache group, have the same tokens after the same prefix. The
// converse also holds, except for retired nodes. Lookups compare tokens, extra keys and parents, so hash collisions
// cost time but never return wrong contents. A node may outlive the blocks of its ancestors, because a sliding window
// frees the head of a sequence first. Owned by BlockPool; engine thread only. After construction, only extra keys and
// CheckIntegrity allocate memory.
// Invariant: a node's ref_cnt counts the cached blocks with its id, its children, and the requests whose last hit or
// published block the node represents. A node whose ref_cnt becomes 0 is removed.
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

// The identity of a full block: its contents and the prefix before it.
struct PrefixKey {
  BlockHash hash;
  PrefixNodeId parent = kEmptyPrefix;
  std::span<const int32_t> token_ids;  // [block_size]
  std::string_view extra_keys;
};

class PrefixTrie {
 public:
  // capacity: maximum number of nodes. block_size: tokens per block. REQUIRES: both are positive.
  PrefixTrie(int64_t capacity, int64_t block_size);

  // Returns the node with exactly this key, or kNoPrefix. O(1) on average.
  PrefixNodeId Lookup(const PrefixKey& key) const;
  // Finds or adds the node, adds a reference to it and records `publisher`. Returns kNoPrefix if the trie is full.
  PrefixNodeId Insert(const PrefixKey& key, RequestId publisher);
  // REQUIRES: `id` is the id of a node.
  PrefixNodeId ParentOf(PrefixNodeId id) const { return nodes_[id].parent; }
  // Add or remove a reference. They do nothing for kEmptyPrefix and kNoPrefix.
  void AddRef(PrefixNodeId id);
  void Release(PrefixNodeId id);

  // Hides the node from Lookup. A lookup that starts at the empty prefix then no longer reaches the node's descendants
  // either.
  void Retire(PrefixNodeId id);
  // Retires the nodes that this request was the last to publish. O(capacity).
  void RetirePublishedBy(RequestId publisher);

  int64_t size() const { return size_; }
  // Returns the first broken invariant, or an empty string. external_refs, [capacity + 1]: the number of references to
  // each node, except those of its children.
  std::string CheckIntegrity(std::span<const int64_t> external_refs) const;
  int64_t capacity() const { return static_cast<int64_t>(nodes_.size()) - 1; }

 private:
  struct Node {
    BlockHash hash;
    PrefixNodeId parent = kEmptyPrefix;
    PrefixNodeId next = kNoPrefix;  // the next node in the bucket, or in the free list
    int32_t ref_cnt = 0;
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
  std::vector<Node> nodes_;  // [capacity + 1]; node 0 is the empty prefix
  std::vector<PrefixNodeId> buckets_;
  std::unique_ptr<int32_t[]> token_ids_;                      // [capacity + 1, block_size]
  std::unordered_map<PrefixNodeId, std::string> extra_keys_;  // only of nodes that have extra keys
  PrefixNodeId free_list_ = kNoPrefix;
};

}  // namespace vllm
