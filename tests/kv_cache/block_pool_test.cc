#include "engine/kv_cache/block_pool.h"

#include <gtest/gtest.h>

#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

BlockKey Key(std::span<const int32_t> tokens, PrefixId parent = kEmptyPrefix, std::string_view extra = {},
             uint32_t group_id = 0) {
  return {HashBlockTokens(kNoneHash, tokens, extra), group_id, parent, tokens, extra};
}

std::vector<KVCacheBlock*> Take(BlockPool& pool, int count) {
  std::vector<KVCacheBlock*> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(pool.GetNewBlock());
  return blocks;
}

const V kA = {1, 2, 3, 4};
const V kB = {5, 6, 7, 8};

TEST(BlockPoolTest, NullBlockIsNeverHandedOutNorCounted) {
  BlockPool pool(3, 4, true);
  EXPECT_EQ(pool.num_free_blocks(), 3);
  EXPECT_EQ(pool.usage(), 0.0);
  EXPECT_EQ(Ids(Take(pool, 3)), (V{1, 2, 3}));
  EXPECT_EQ(pool.num_free_blocks(), 0);
  EXPECT_EQ(pool.usage(), 1.0);
  EXPECT_EQ(pool.null_block()->block_id, 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, UncachedBlocksAreFreedToTheFrontTailFirst) {
  BlockPool pool(5, 4, true);
  const auto blocks = Take(pool, 3);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(FreeIds(pool), (V{3, 2, 1, 4, 5}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, CachedBlocksAreFreedToTheEndTailFirst) {
  BlockPool pool(5, 4, true);
  const auto blocks = Take(pool, 3);
  const PrefixId prefix = pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.CacheFullBlock(blocks[1], Key(kB, prefix), 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(FreeIds(pool), (V{3, 4, 5, 2, 1}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, BlockWithAnotherUserIsNotFreed) {
  BlockPool pool(2, 4, true);
  const auto blocks = Take(pool, 1);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.Touch(blocks[0]);
  EXPECT_EQ(blocks[0]->ref_cnt, 2);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.num_free_blocks(), 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.num_free_blocks(), 2);
}

TEST(BlockPoolTest, TouchedFreeBlockLeavesTheFreeQueue) {
  BlockPool pool(3, 4, true);
  const auto blocks = Take(pool, 1);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.FreeBlocks(blocks);
  pool.Touch(pool.GetCachedBlock(Key(kA)));
  EXPECT_EQ(FreeIds(pool), (V{2, 3}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, FreedCachedBlockIsStillFound) {
  BlockPool pool(3, 4, true);
  const auto blocks = Take(pool, 1);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), blocks[0]);
  EXPECT_EQ(pool.GetCachedBlock(Key(kB)), nullptr);
}

TEST(BlockPoolTest, TakingACachedBlockForgetsItsContents) {
  BlockPool pool(1, 4, true);
  const auto blocks = Take(pool, 1);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.GetNewBlock(), blocks[0]);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), nullptr);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, LeastRecentlyFreedCachedBlockIsTakenFirst) {
  BlockPool pool(2, 4, true);
  const auto blocks = Take(pool, 2);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.CacheFullBlock(blocks[1], Key(kB), 2);
  pool.FreeBlocks(std::span(blocks).subspan(1, 1));
  pool.FreeBlocks(std::span(blocks).subspan(0, 1));
  EXPECT_EQ(pool.GetNewBlock(), blocks[1]);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), blocks[0]);
}

TEST(BlockPoolTest, DuplicatesShareAPrefixIdAndTheFirstIsFound) {
  BlockPool pool(3, 4, true);
  const auto blocks = Take(pool, 2);
  const PrefixId first = pool.CacheFullBlock(blocks[0], Key(kA), 1);
  EXPECT_EQ(pool.CacheFullBlock(blocks[1], Key(kA), 2), first);
  EXPECT_EQ(pool.num_cached_blocks(), 2);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), blocks[0]);
}

TEST(BlockPoolTest, RemainingDuplicateIsFoundOnceTheFirstIsGone) {
  BlockPool pool(2, 4, true);
  const auto blocks = Take(pool, 2);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.CacheFullBlock(blocks[1], Key(kA), 2);
  pool.FreeBlocks(std::span(blocks).first(1));
  EXPECT_EQ(pool.GetNewBlock(), blocks[0]);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), blocks[1]);
}

TEST(BlockPoolTest, LookupComparesTokensParentExtraKeysAndGroup) {
  BlockPool pool(2, 4, true);
  const auto blocks = Take(pool, 1);
  BlockKey key = Key(kA, 7, "0:salt", 1);
  pool.CacheFullBlock(blocks[0], key, 1);
  EXPECT_EQ(pool.GetCachedBlock(key), blocks[0]);
  BlockKey other = key;
  other.token_ids = kB;
  EXPECT_EQ(pool.GetCachedBlock(other), nullptr);
  other = key;
  other.parent_prefix_id = 8;
  EXPECT_EQ(pool.GetCachedBlock(other), nullptr);
  other = key;
  other.extra_keys = "0:pepper";
  EXPECT_EQ(pool.GetCachedBlock(other), nullptr);
  other = key;
  other.group_id = 0;
  EXPECT_EQ(pool.GetCachedBlock(other), nullptr);
}

TEST(BlockPoolTest, PrefixIdIsNotUsedAgainAfterEviction) {
  BlockPool pool(1, 4, true);
  auto blocks = Take(pool, 1);
  const PrefixId first = pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.FreeBlocks(blocks);
  blocks = Take(pool, 1);
  EXPECT_NE(pool.CacheFullBlock(blocks[0], Key(kA), 1), first);
}

TEST(BlockPoolTest, ResetForgetsEverythingWhenNothingIsInUse) {
  BlockPool pool(3, 4, true);
  const auto blocks = Take(pool, 2);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  EXPECT_FALSE(pool.ResetPrefixCache());
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), blocks[0]);
  pool.FreeBlocks(blocks);
  EXPECT_TRUE(pool.ResetPrefixCache());
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), nullptr);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, EvictPublishedByWithdrawsOnlyThatRequestsBlocks) {
  BlockPool pool(3, 4, true);
  const auto blocks = Take(pool, 2);
  pool.CacheFullBlock(blocks[0], Key(kA), 1);
  pool.CacheFullBlock(blocks[1], Key(kB), 2);
  pool.FreeBlocks(std::span(blocks).first(1));
  pool.EvictPublishedBy(1);
  EXPECT_EQ(pool.GetCachedBlock(Key(kA)), nullptr);
  EXPECT_EQ(pool.GetCachedBlock(Key(kB)), blocks[1]);
  EXPECT_EQ(FreeIds(pool), (V{1, 3}));
  pool.EvictPublishedBy(2);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(blocks[1]->ref_cnt, 1);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, ManyBlocksOfOneHashAreToldApart) {
  BlockPool pool(50, 4, true);
  const auto blocks = Take(pool, 50);
  std::vector<V> tokens;
  for (int32_t i = 0; i < 50; ++i) tokens.push_back(Iota(i, 4));
  for (size_t i = 0; i < 50; ++i) pool.CacheFullBlock(blocks[i], {{1, 2}, 0, kEmptyPrefix, tokens[i], {}}, i + 1);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(pool.GetCachedBlock({{1, 2}, 0, kEmptyPrefix, tokens[i], {}}), blocks[i]);
  for (size_t i = 0; i < 50; i += 2) pool.EvictPublishedBy(i + 1);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(pool.GetCachedBlock({{1, 2}, 0, kEmptyPrefix, tokens[i], {}}), i % 2 ? blocks[i] : nullptr);
  }
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

}  // namespace
}  // namespace vllm
