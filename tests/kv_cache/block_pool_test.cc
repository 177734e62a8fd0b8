#include "engine/kv_cache/block_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

// Publishes `block` with the contents `tokens` after the prefix `parent`. Returns the node id of the prefix that ends
// with this block.
PrefixNodeId Publish(BlockPool& pool, KVCacheBlock* block, std::span<const int32_t> tokens, RequestId publisher,
                     PrefixNodeId parent = kEmptyPrefix, uint32_t group_id = 0) {
  const PrefixNodeId id =
      pool.prefix_trie().Insert({HashBlockTokens(kNoneHash, tokens, {}), parent, tokens, {}}, publisher);
  pool.CacheFullBlock(block, id, group_id, publisher);
  pool.prefix_trie().Release(id);
  return id;
}

KVCacheBlock* Lookup(const BlockPool& pool, std::span<const int32_t> tokens, uint32_t group_id = 0) {
  const PrefixNodeId id = pool.prefix_trie().Lookup({HashBlockTokens(kNoneHash, tokens, {}), kEmptyPrefix, tokens, {}});
  return id == kNoPrefix ? nullptr : pool.GetCachedBlock(id, group_id);
}

std::vector<KVCacheBlock*> Allocate(BlockPool& pool, int count) {
  std::vector<KVCacheBlock*> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(pool.GetNewBlock());
  return blocks;
}

const V kA = {1, 2, 3, 4};
const V kB = {5, 6, 7, 8};

TEST(BlockPoolTest, NullBlockIsNeitherAllocatedNorCounted) {
  BlockPool pool(3, 4, true, 3);
  EXPECT_EQ(pool.num_free_blocks(), 3);
  EXPECT_EQ(pool.usage(), 0.0);
  EXPECT_EQ(Ids(Allocate(pool, 3)), (V{1, 2, 3}));
  EXPECT_EQ(pool.num_free_blocks(), 0);
  EXPECT_EQ(pool.usage(), 1.0);
  EXPECT_EQ(pool.null_block()->block_id, 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, FreeingABlockTwiceFailsAnInternalCheck) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 1);
  pool.FreeBlocks(blocks);
  try {
    pool.FreeBlocks(blocks);
    FAIL() << "no exception";
  } catch (const std::logic_error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("internal check failed: block->ref_cnt > 0 (block_pool.cc:", 0), 0u)
        << error.what();
  }
}

TEST(BlockPoolTest, AllocatingFromAnEmptyPoolFails) {
  BlockPool pool(1, 4, true, 1);
  pool.GetNewBlock();
  EXPECT_THROW(pool.GetNewBlock(), std::logic_error);
}

TEST(BlockPoolTest, UncachedBlocksAreFreedToTheFrontOfTheQueueTailFirst) {
  BlockPool pool(5, 4, true, 5);
  const auto blocks = Allocate(pool, 3);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(FreeIds(pool), (V{3, 2, 1, 4, 5}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, CachedBlocksAreFreedToTheEndOfTheQueueTailFirst) {
  BlockPool pool(5, 4, true, 5);
  const auto blocks = Allocate(pool, 3);
  const PrefixNodeId prefix = Publish(pool, blocks[0], kA, 1);
  Publish(pool, blocks[1], kB, 1, prefix);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(FreeIds(pool), (V{3, 4, 5, 2, 1}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, BlockWithAnotherReferenceIsNotFreed) {
  BlockPool pool(2, 4, true, 2);
  const auto blocks = Allocate(pool, 1);
  Publish(pool, blocks[0], kA, 1);
  pool.Touch(blocks[0]);
  EXPECT_EQ(blocks[0]->ref_cnt, 2);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.num_free_blocks(), 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.num_free_blocks(), 2);
}

TEST(BlockPoolTest, TouchedFreeBlockLeavesTheFreeQueue) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 1);
  Publish(pool, blocks[0], kA, 1);
  pool.FreeBlocks(blocks);
  pool.Touch(Lookup(pool, kA));
  EXPECT_EQ(FreeIds(pool), (V{2, 3}));
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, FreedCachedBlockIsStillFound) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 1);
  Publish(pool, blocks[0], kA, 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(Lookup(pool, kA), blocks[0]);
  EXPECT_EQ(Lookup(pool, kB), nullptr);
}

TEST(BlockPoolTest, AllocatingACachedBlockEvictsItsContents) {
  BlockPool pool(1, 4, true, 1);
  const auto blocks = Allocate(pool, 1);
  Publish(pool, blocks[0], kA, 1);
  pool.FreeBlocks(blocks);
  EXPECT_EQ(pool.GetNewBlock(), blocks[0]);
  EXPECT_EQ(Lookup(pool, kA), nullptr);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, LeastRecentlyFreedCachedBlockIsEvictedFirst) {
  BlockPool pool(2, 4, true, 2);
  const auto blocks = Allocate(pool, 2);
  Publish(pool, blocks[0], kA, 1);
  Publish(pool, blocks[1], kB, 2);
  pool.FreeBlocks(std::span(blocks).subspan(1, 1));
  pool.FreeBlocks(std::span(blocks).subspan(0, 1));
  EXPECT_EQ(pool.GetNewBlock(), blocks[1]);
  EXPECT_EQ(Lookup(pool, kA), blocks[0]);
}

TEST(BlockPoolTest, DuplicatesShareAPrefixNodeIdAndTheFirstIsFound) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 2);
  const PrefixNodeId first = Publish(pool, blocks[0], kA, 1);
  EXPECT_EQ(Publish(pool, blocks[1], kA, 2), first);
  EXPECT_EQ(pool.num_cached_blocks(), 2);
  EXPECT_EQ(Lookup(pool, kA), blocks[0]);
}

TEST(BlockPoolTest, RemainingDuplicateIsFoundAfterTheFirstIsEvicted) {
  BlockPool pool(2, 4, true, 2);
  const auto blocks = Allocate(pool, 2);
  Publish(pool, blocks[0], kA, 1);
  Publish(pool, blocks[1], kA, 2);
  pool.FreeBlocks(std::span(blocks).first(1));
  EXPECT_EQ(pool.GetNewBlock(), blocks[0]);
  EXPECT_EQ(Lookup(pool, kA), blocks[1]);
}

TEST(BlockPoolTest, GroupsDoNotShareCachedBlocks) {
  BlockPool pool(2, 4, true, 2);
  const auto blocks = Allocate(pool, 2);
  Publish(pool, blocks[0], kA, 1, kEmptyPrefix, 1);
  EXPECT_EQ(Lookup(pool, kA, 1), blocks[0]);
  EXPECT_EQ(Lookup(pool, kA, 0), nullptr);
  Publish(pool, blocks[1], kA, 1, kEmptyPrefix, 0);
  EXPECT_EQ(Lookup(pool, kA, 0), blocks[1]);
  EXPECT_EQ(blocks[0]->prefix_id, blocks[1]->prefix_id);
}

TEST(BlockPoolTest, EvictedBlockReleasesItsPrefix) {
  BlockPool pool(1, 4, true, 1);
  const auto blocks = Allocate(pool, 1);
  Publish(pool, blocks[0], kA, 1);
  EXPECT_EQ(pool.prefix_trie().size(), 1);
  pool.FreeBlocks(blocks);
  Allocate(pool, 1);
  EXPECT_EQ(pool.prefix_trie().size(), 0);
}

TEST(BlockPoolTest, NullBlocksInATableAreNotFreed) {
  BlockPool pool(3, 4, true, 3);
  auto blocks = Allocate(pool, 3);
  const std::vector<KVCacheBlock*> table = {pool.null_block(), blocks[1], blocks[2]};
  pool.FreeBlocks(table);
  EXPECT_EQ(FreeIds(pool), (V{3, 2}));
  EXPECT_EQ(pool.null_block()->ref_cnt, 1);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, ResetEmptiesTheCacheOnlyIfNothingIsInUse) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 2);
  Publish(pool, blocks[0], kA, 1);
  EXPECT_FALSE(pool.ResetPrefixCache());
  EXPECT_EQ(Lookup(pool, kA), blocks[0]);
  pool.FreeBlocks(blocks);
  EXPECT_TRUE(pool.ResetPrefixCache());
  EXPECT_EQ(Lookup(pool, kA), nullptr);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

TEST(BlockPoolTest, EvictPublishedByEvictsOnlyThatRequestsBlocks) {
  BlockPool pool(3, 4, true, 3);
  const auto blocks = Allocate(pool, 2);
  Publish(pool, blocks[0], kA, 1);
  Publish(pool, blocks[1], kB, 2);
  pool.FreeBlocks(std::span(blocks).first(1));
  pool.EvictPublishedBy(1);
  EXPECT_EQ(Lookup(pool, kA), nullptr);
  EXPECT_EQ(Lookup(pool, kB), blocks[1]);
  EXPECT_EQ(FreeIds(pool), (V{1, 3}));
  pool.EvictPublishedBy(2);
  EXPECT_EQ(pool.num_cached_blocks(), 0);
  EXPECT_EQ(blocks[1]->ref_cnt, 1);
  EXPECT_EQ(pool.CheckIntegrity(), "");
}

}  // namespace
}  // namespace vllm
