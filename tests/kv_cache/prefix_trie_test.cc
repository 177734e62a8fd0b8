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

TEST(PrefixTrieTest, AcquiringTwiceGivesTheSameId) {
  PrefixTrie table(2, 4);
  const PrefixNodeId id = table.Acquire(Key(kA), 1);
  EXPECT_EQ(table.Acquire(Key(kA), 2), id);
  EXPECT_EQ(table.Find(Key(kA)), id);
  EXPECT_EQ(table.size(), 1);
}

TEST(PrefixTrieTest, LookupComparesTokensParentAndExtraKeys) {
  PrefixTrie table(9, 4);
  const PrefixNodeId parent = table.Acquire(Key(kB), 1);
  PrefixKey key = Key(kA, parent, "0:salt");
  const PrefixNodeId id = table.Acquire(key, 1);
  EXPECT_EQ(table.Find(key), id);
  PrefixKey other = key;
  other.token_ids = kB;
  EXPECT_EQ(table.Find(other), kNoPrefix);
  other = key;
  other.parent = kEmptyPrefix;
  EXPECT_EQ(table.Find(other), kNoPrefix);
  other = key;
  other.extra_keys = "0:pepper";
  EXPECT_EQ(table.Find(other), kNoPrefix);
}

TEST(PrefixTrieTest, NodeLivesAsLongAsItsDescendants) {
  PrefixTrie table(3, 4);
  const PrefixNodeId a = table.Acquire(Key(kA), 1);
  const PrefixNodeId b = table.Acquire(Key(kB, a), 1);
  const PrefixNodeId c = table.Acquire(Key(kB, b), 1);
  table.RemoveUser(a);
  table.RemoveUser(b);
  EXPECT_EQ(table.Find(Key(kA)), a);
  EXPECT_EQ(table.Find(Key(kB, a)), b);
  table.RemoveUser(c);
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(table.Find(Key(kA)), kNoPrefix);
  EXPECT_EQ(table.CheckIntegrity(std::vector<int64_t>(4)), "");
}

TEST(PrefixTrieTest, FullTableGivesNoId) {
  PrefixTrie table(1, 4);
  const PrefixNodeId a = table.Acquire(Key(kA), 1);
  EXPECT_EQ(table.Acquire(Key(kB), 1), kNoPrefix);
  table.RemoveUser(a);
  EXPECT_NE(table.Acquire(Key(kB), 1), kNoPrefix);
}

TEST(PrefixTrieTest, RetiredNodeIsNotFoundNorWhatGrewOnIt) {
  PrefixTrie table(4, 4);
  const PrefixNodeId a = table.Acquire(Key(kA), 1);
  const PrefixNodeId b = table.Acquire(Key(kB, a), 2);
  table.RetirePublishedBy(1);
  EXPECT_EQ(table.Find(Key(kA)), kNoPrefix);
  const PrefixNodeId again = table.Acquire(Key(kA), 3);
  EXPECT_NE(again, a);
  EXPECT_EQ(table.Find(Key(kB, again)), kNoPrefix);
  EXPECT_EQ(table.CheckIntegrity(std::vector<int64_t>{0, 1, 1, 1, 0}), "");
  table.RemoveUser(b);
  table.RemoveUser(a);
  EXPECT_EQ(table.size(), 1);
}

TEST(PrefixTrieTest, ManyPrefixesOfOneHashAreToldApart) {
  PrefixTrie table(50, 4);
  std::vector<V> tokens;
  std::vector<PrefixNodeId> ids;
  for (int32_t i = 0; i < 50; ++i) tokens.push_back(Iota(i, 4));
  for (size_t i = 0; i < 50; ++i) ids.push_back(table.Acquire({{1, 2}, kEmptyPrefix, tokens[i], {}}, i + 1));
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(table.Find({{1, 2}, kEmptyPrefix, tokens[i], {}}), ids[i]);
  for (size_t i = 0; i < 50; i += 2) table.RemoveUser(ids[i]);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(table.Find({{1, 2}, kEmptyPrefix, tokens[i], {}}), i % 2 ? ids[i] : kNoPrefix);
  }
}

}  // namespace
}  // namespace vllm
