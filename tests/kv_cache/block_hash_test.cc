#include "engine/request/block_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

const std::vector<int32_t> kTokens = {1, 2, 3, 4};

TEST(BlockHashTest, IsTheSameInEveryProcess) {
  const BlockHash hash = HashBlockTokens(kNoneHash, kTokens, "");
  EXPECT_EQ(hash, HashBlockTokens(kNoneHash, kTokens, ""));
  EXPECT_EQ(hash.lo, 0x890af41b58c427b4u);
  EXPECT_EQ(hash.hi, 0x0903a50824c2fb71u);
}

TEST(BlockHashTest, DependsOnEachToken) {
  const BlockHash hash = HashBlockTokens(kNoneHash, kTokens, "");
  for (size_t i = 0; i < kTokens.size(); ++i) {
    auto other = kTokens;
    ++other[i];
    EXPECT_FALSE(HashBlockTokens(kNoneHash, other, "") == hash) << i;
  }
  EXPECT_FALSE(HashBlockTokens(kNoneHash, std::vector<int32_t>{1, 2, 4, 3}, "") == hash);
}

TEST(BlockHashTest, DependsOnTheParent) {
  const BlockHash parent = HashBlockTokens(kNoneHash, kTokens, "");
  EXPECT_FALSE(HashBlockTokens(parent, kTokens, "") == parent);
  EXPECT_FALSE(HashBlockTokens({parent.lo, parent.hi + 1}, kTokens, "") == HashBlockTokens(parent, kTokens, ""));
}

TEST(BlockHashTest, DependsOnExtraKeys) {
  EXPECT_FALSE(HashBlockTokens(kNoneHash, kTokens, "") == HashBlockTokens(kNoneHash, kTokens, "0:salt"));
  EXPECT_FALSE(HashBlockTokens(kNoneHash, kTokens, "0:pepper") == HashBlockTokens(kNoneHash, kTokens, "0:salt"));
}

TEST(BlockHashTest, DoesNotCollideOverManyBlocks) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  BlockHash parent = kNoneHash;
  for (int32_t i = 0; i < 100000; ++i) {
    const BlockHash hash = HashBlockTokens(parent, std::vector<int32_t>{i % 7, i % 3, 0, 0}, "");
    EXPECT_TRUE(seen.insert({hash.lo, hash.hi}).second);
    if (i % 100 == 0) parent = hash;
    if (i % 21 == 20) parent.lo += 1;
  }
}

TEST(BlockHashTest, LowBitsSpreadOverBuckets) {
  std::vector<int> buckets(64);
  for (int32_t i = 0; i < 64000; ++i) ++buckets[HashBlockTokens(kNoneHash, std::vector<int32_t>{i}, "").lo % 64];
  for (const int count : buckets) EXPECT_NEAR(count, 1000, 200);
}

TEST(BlockHashTest, CacheSaltIsAnExtraKeyOfTheFirstBlockOnly) {
  const Request unsalted(MakeCore(1, {1}));
  EXPECT_EQ(unsalted.extra_keys(true), "");
  EXPECT_EQ(unsalted.extra_keys(false), "");
  const Request salted(MakeCore(1, {1}, "salt"));
  EXPECT_EQ(salted.extra_keys(true), "salt");
  EXPECT_EQ(salted.extra_keys(false), "");
}

TEST(BlockHashTest, BlockHashesOfARequestGrowWithItsTokens) {
  Request request(MakeCore(1, Iota(0, 6)));
  EXPECT_EQ(request.BlockHashes(1, 4, &HashBlockTokens).size(), 1u);
  request.AppendOutputToken(6);
  request.AppendOutputToken(7);
  // The second block spans prompt and output.
  const BlockHash first = HashBlockTokens(kNoneHash, Iota(0, 4), "");
  const auto hashes = request.BlockHashes(2, 4, &HashBlockTokens);
  ASSERT_EQ(hashes.size(), 2u);
  EXPECT_EQ(hashes[0], first);
  EXPECT_EQ(hashes[1], HashBlockTokens(first, Iota(4, 4), ""));
}

TEST(BlockHashTest, TokensOfARequestMaySpanPromptAndOutput) {
  Request request(MakeCore(1, Iota(0, 3)));
  for (int32_t i = 3; i < 8; ++i) request.AppendOutputToken(i);
  std::vector<int32_t> scratch;
  for (int64_t begin = 0; begin < 8; ++begin) {
    for (int64_t count = 0; begin + count <= 8; ++count) {
      const auto tokens = request.Tokens(begin, count, scratch);
      EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()), Iota(static_cast<int32_t>(begin), count));
    }
  }
}

}  // namespace
}  // namespace vllm
