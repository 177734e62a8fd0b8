#include "engine/kv_cache/prefix_trie.h"

#include <gtest/gtest.h>

#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

const V kA = {1, 2, 3, 4};
const V kB = {5, 6, 7, 8};

PrefixKey Key(std::span<const int32_t> tokens, PrefixNodeId parent = kEmptyPrefix, std::string_view extra = {}) {
  return {HashBlockTokens(kNoneHash, tokens, extra), parent, tokens, extra};
}

TEST(PrefixTrieTest, InsertingTwiceReturnsTheSameId) {
  PrefixTrie trie(2, 4);
  const PrefixNodeId id = trie.Insert(Key(kA), 1);
  EXPECT_EQ(trie.Insert(Key(kA), 2), id);
  EXPECT_EQ(trie.Lookup(Key(kA)), id);
  EXPECT_EQ(trie.size(), 1);
}

TEST(PrefixTrieTest, LookupComparesTokensParentAndExtraKeys) {
  PrefixTrie trie(9, 4);
  const PrefixNodeId parent = trie.Insert(Key(kB), 1);
  PrefixKey key = Key(kA, parent, "0:salt");
  const PrefixNodeId id = trie.Insert(key, 1);
  EXPECT_EQ(trie.Lookup(key), id);
  PrefixKey other = key;
  other.token_ids = kB;
  EXPECT_EQ(trie.Lookup(other), kNoPrefix);
  other = key;
  other.parent = kEmptyPrefix;
  EXPECT_EQ(trie.Lookup(other), kNoPrefix);
  other = key;
  other.extra_keys = "0:pepper";
  EXPECT_EQ(trie.Lookup(other), kNoPrefix);
}

TEST(PrefixTrieTest, NodeLivesAsLongAsItsDescendants) {
  PrefixTrie trie(3, 4);
  const PrefixNodeId a = trie.Insert(Key(kA), 1);
  const PrefixNodeId b = trie.Insert(Key(kB, a), 1);
  const PrefixNodeId c = trie.Insert(Key(kB, b), 1);
  trie.Release(a);
  trie.Release(b);
  EXPECT_EQ(trie.Lookup(Key(kA)), a);
  EXPECT_EQ(trie.Lookup(Key(kB, a)), b);
  trie.Release(c);
  EXPECT_EQ(trie.size(), 0);
  EXPECT_EQ(trie.Lookup(Key(kA)), kNoPrefix);
  EXPECT_EQ(trie.CheckIntegrity(std::vector<int64_t>(4)), "");
}

TEST(PrefixTrieTest, FullTrieReturnsNoPrefix) {
  PrefixTrie trie(1, 4);
  const PrefixNodeId a = trie.Insert(Key(kA), 1);
  EXPECT_EQ(trie.Insert(Key(kB), 1), kNoPrefix);
  trie.Release(a);
  EXPECT_NE(trie.Insert(Key(kB), 1), kNoPrefix);
}

TEST(PrefixTrieTest, RetiredNodeAndItsDescendantsAreNotFound) {
  PrefixTrie trie(4, 4);
  const PrefixNodeId a = trie.Insert(Key(kA), 1);
  const PrefixNodeId b = trie.Insert(Key(kB, a), 2);
  trie.RetirePublishedBy(1);
  EXPECT_EQ(trie.Lookup(Key(kA)), kNoPrefix);
  const PrefixNodeId again = trie.Insert(Key(kA), 3);
  EXPECT_NE(again, a);
  EXPECT_EQ(trie.Lookup(Key(kB, again)), kNoPrefix);
  EXPECT_EQ(trie.CheckIntegrity(std::vector<int64_t>{0, 1, 1, 1, 0}), "");
  trie.Release(b);
  trie.Release(a);
  EXPECT_EQ(trie.size(), 1);
}

TEST(PrefixTrieTest, PrefixesWithEqualHashesAreDistinguished) {
  PrefixTrie trie(50, 4);
  std::vector<V> tokens;
  std::vector<PrefixNodeId> ids;
  for (int32_t i = 0; i < 50; ++i) tokens.push_back(Iota(i, 4));
  for (size_t i = 0; i < 50; ++i) ids.push_back(trie.Insert({{1, 2}, kEmptyPrefix, tokens[i], {}}, i + 1));
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(trie.Lookup({{1, 2}, kEmptyPrefix, tokens[i], {}}), ids[i]);
  for (size_t i = 0; i < 50; i += 2) trie.Release(ids[i]);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(trie.Lookup({{1, 2}, kEmptyPrefix, tokens[i], {}}), i % 2 ? ids[i] : kNoPrefix);
  }
}

}  // namespace
}  // namespace vllm
