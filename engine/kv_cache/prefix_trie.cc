#include "engine/kv_cache/prefix_trie.h"

#include <algorithm>
#include <bit>

#include "kernels/threading/check.h"

namespace vllm {

PrefixTrie::PrefixTrie(int64_t capacity, int64_t block_size)
    : block_size_(block_size),
      nodes_(static_cast<size_t>(capacity) + 1),
      buckets_(std::bit_ceil(nodes_.size()), kNoPrefix) {
  VLLM_CHECK(capacity > 0 && block_size > 0);
  // Leave the array uninitialized, so that pages without prefixes never take physical memory.
  token_ids_.reset(new int32_t[nodes_.size() * static_cast<size_t>(block_size)]);
  for (auto id = static_cast<PrefixNodeId>(capacity); id > 0; --id) {
    nodes_[id].next = free_list_;
    free_list_ = id;
  }
}

size_t PrefixTrie::BucketIndex(const BlockHash& hash, PrefixNodeId parent) const {
  return static_cast<size_t>(hash.lo + parent * 0x9e3779b97f4a7c15) & (buckets_.size() - 1);
}

PrefixNodeId PrefixTrie::Lookup(const PrefixKey& key) const {
  VLLM_CHECK(static_cast<int64_t>(key.token_ids.size()) == block_size_);
  for (PrefixNodeId id = buckets_[BucketIndex(key.hash, key.parent)]; id != kNoPrefix; id = nodes_[id].next) {
    const Node& node = nodes_[id];
    if (node.hash == key.hash && node.parent == key.parent &&
        std::equal(key.token_ids.begin(), key.token_ids.end(), TokensOf(id)) && ExtraKeysOf(id) == key.extra_keys) {
      return id;
    }
  }
  return kNoPrefix;
}

PrefixNodeId PrefixTrie::Insert(const PrefixKey& key, RequestId publisher) {
  PrefixNodeId id = Lookup(key);
  if (id == kNoPrefix) {
    if (free_list_ == kNoPrefix) return kNoPrefix;
    id = free_list_;
    free_list_ = nodes_[id].next;
    PrefixNodeId& bucket = buckets_[BucketIndex(key.hash, key.parent)];
    nodes_[id] = {.hash = key.hash, .parent = key.parent, .next = bucket};
    bucket = id;
    std::copy(key.token_ids.begin(), key.token_ids.end(), TokensOf(id));
    if (!key.extra_keys.empty()) {
      nodes_[id].has_extra_keys = true;
      extra_keys_[id] = key.extra_keys;
    }
    AddRef(key.parent);
    ++size_;
  }
  nodes_[id].publisher = publisher;
  ++nodes_[id].ref_cnt;
  return id;
}

void PrefixTrie::AddRef(PrefixNodeId id) {
  if (id != kEmptyPrefix && id != kNoPrefix) ++nodes_[id].ref_cnt;
}

void PrefixTrie::Release(PrefixNodeId id) {
  while (id != kEmptyPrefix && id != kNoPrefix) {
    Node& node = nodes_[id];
    VLLM_CHECK(node.ref_cnt > 0);
    if (--node.ref_cnt > 0) return;
    if (!node.retired) Unlink(id);
    if (node.has_extra_keys) extra_keys_.erase(id);
    node.next = free_list_;
    free_list_ = id;
    --size_;
    id = node.parent;
  }
}

void PrefixTrie::Retire(PrefixNodeId id) {
  if (nodes_[id].retired) return;
  Unlink(id);
  nodes_[id].retired = true;
}

void PrefixTrie::RetirePublishedBy(RequestId publisher) {
  for (PrefixNodeId id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].ref_cnt > 0 && nodes_[id].publisher == publisher) Retire(id);
  }
}

std::string_view PrefixTrie::ExtraKeysOf(PrefixNodeId id) const {
  return nodes_[id].has_extra_keys ? std::string_view(extra_keys_.find(id)->second) : std::string_view();
}

void PrefixTrie::Unlink(PrefixNodeId id) {
  PrefixNodeId* link = &buckets_[BucketIndex(nodes_[id].hash, nodes_[id].parent)];
  while (*link != id) link = &nodes_[*link].next;
  *link = nodes_[id].next;
}

std::string PrefixTrie::CheckIntegrity(std::span<const int64_t> external_refs) const {
  std::vector<int64_t> refs(external_refs.begin(), external_refs.end());
  int64_t num_used = 0;
  for (PrefixNodeId id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].ref_cnt == 0) continue;
    ++num_used;
    ++refs[nodes_[id].parent];
  }
  if (num_used != size_) return "prefix trie: wrong size";
  for (PrefixNodeId id = 1; id < nodes_.size(); ++id) {
    const std::string name = "prefix " + std::to_string(id) + ": ";
    if (nodes_[id].ref_cnt != refs[id]) return name + "wrong reference count";
    if (nodes_[id].ref_cnt == 0 || nodes_[id].retired) continue;
    const PrefixKey key{
        nodes_[id].hash, nodes_[id].parent, {TokensOf(id), static_cast<size_t>(block_size_)}, ExtraKeysOf(id)};
    if (Lookup(key) != id) return name + "not found under its key";
  }
  return {};
}

}  // namespace vllm
