#include "engine/kv_cache/kv_cache_manager.h"

#include <gtest/gtest.h>

#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

TEST(KVCacheManagerTest, AllocatesWholeBlocksAndFillsThemBeforeAllocatingMore) {
  ManagerFixture f(10);
  Request request(MakeCore(1, Iota(0, 6)));
  EXPECT_EQ(f.Admit(request), 0);
  EXPECT_EQ(f.Blocks(request), (V{1, 2}));
  EXPECT_TRUE(f.Decode(request, 6));
  EXPECT_TRUE(f.Decode(request, 7));
  EXPECT_EQ(f.Blocks(request).size(), 2u);
  EXPECT_TRUE(f.Decode(request, 8));
  EXPECT_EQ(f.Blocks(request), (V{1, 2, 3}));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, FailedAllocationChangesNothing) {
  ManagerFixture f(2);
  Request a(MakeCore(1, Iota(0, 8)));
  EXPECT_EQ(f.Admit(a), 0);
  Request b(MakeCore(2, Iota(100, 5)));
  EXPECT_EQ(f.Admit(b), -1);
  EXPECT_TRUE(f.Blocks(b).empty());
  EXPECT_FALSE(f.Decode(a, 8));
  EXPECT_EQ(f.Blocks(a), (V{1, 2}));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, RepeatedPrefixHitsFullBlocksOnly) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 11)));
  EXPECT_EQ(f.Admit(a), 0);
  Request b(MakeCore(2, Iota(0, 11)));
  EXPECT_EQ(f.Admit(b), 8);
  EXPECT_EQ(f.Blocks(a), (V{1, 2, 3}));
  EXPECT_EQ(f.Blocks(b), (V{1, 2, 4}));
  EXPECT_EQ(f.manager.pool().block(1).ref_cnt, 2);
  EXPECT_EQ(f.manager.pool().block(3).ref_cnt, 1);
}

TEST(KVCacheManagerTest, LastTokenIsAlwaysRecomputedEvenIfThatNeedsAWholeBlock) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 8)));
  f.Admit(a);
  Request b(MakeCore(2, Iota(0, 8)));
  EXPECT_EQ(f.Admit(b), 4);
  Request c(MakeCore(3, Iota(0, 9)));
  EXPECT_EQ(f.Admit(c), 8);
}

TEST(KVCacheManagerTest, DifferentBlockEndsTheHit) {
  ManagerFixture f(20);
  Request a(MakeCore(1, Iota(0, 16)));
  f.Admit(a);
  auto tokens = Iota(0, 16);
  tokens[5] = 77;
  Request b(MakeCore(2, tokens));
  EXPECT_EQ(f.Admit(b), 4);
}

TEST(KVCacheManagerTest, GeneratedTokensAreCachedToo) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 3)));
  f.Admit(a);
  for (int32_t i = 3; i < 9; ++i) EXPECT_TRUE(f.Decode(a, i));
  f.manager.Free(a);
  Request b(MakeCore(2, Iota(0, 10)));
  EXPECT_EQ(f.Admit(b), 8);
}

TEST(KVCacheManagerTest, FreedBlocksAreReusedUncachedFirstThenTailFirst) {
  ManagerFixture f(6);
  Request a(MakeCore(1, Iota(0, 14)));
  f.Admit(a);
  EXPECT_EQ(f.Blocks(a), (V{1, 2, 3, 4}));
  f.manager.Free(a);
  EXPECT_EQ(FreeIds(f.manager.pool()), (V{4, 5, 6, 3, 2, 1}));
}

TEST(KVCacheManagerTest, TailOfAnOldPrefixIsEvictedFirst) {
  ManagerFixture f(4);
  Request a(MakeCore(1, Iota(0, 13)));
  f.Admit(a);
  f.manager.Free(a);
  Request other(MakeCore(2, Iota(100, 7)));
  EXPECT_EQ(f.Admit(other), 0);
  f.manager.Free(other);
  Request again(MakeCore(3, Iota(0, 13)));
  EXPECT_EQ(f.Admit(again), 8);
}

TEST(KVCacheManagerTest, HitBlocksInTheFreeQueueAreNotCountedAsFree) {
  ManagerFixture f(4);
  Request a(MakeCore(1, Iota(0, 8)));
  f.Admit(a);
  f.manager.Free(a);
  Request running(MakeCore(2, Iota(100, 3)));
  EXPECT_EQ(f.Admit(running), 0);
  // Three blocks are free, and two of them are hits. Tokens 8..12 need two more blocks, but only one is left.
  Request b(MakeCore(3, Iota(0, 13)));
  EXPECT_EQ(f.Admit(b), -1);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
  Request c(MakeCore(4, Iota(0, 12)));
  EXPECT_EQ(f.Admit(c), 8);
}

TEST(KVCacheManagerTest, HitBlocksAreNotEvictedByTheAllocationThatUsesThem) {
  ManagerFixture f(3);
  Request a(MakeCore(1, Iota(0, 8)));
  f.Admit(a);
  f.manager.Free(a);
  Request b(MakeCore(2, Iota(0, 9)));
  EXPECT_EQ(f.Admit(b), 8);
  EXPECT_EQ(f.Blocks(b), (V{1, 2, 3}));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, ConcurrentDuplicatesKeepTheirOwnBlocks) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 4)));
  Request b(MakeCore(2, Iota(0, 4)));
  f.Admit(a);
  f.Admit(b);
  EXPECT_EQ(f.Blocks(a), (V{1}));
  EXPECT_EQ(f.Blocks(b), (V{2}));
  EXPECT_TRUE(f.Decode(a, 50));
  EXPECT_TRUE(f.Decode(b, 60));
  f.manager.Free(a);
  Request c(MakeCore(3, Iota(0, 5)));
  EXPECT_EQ(f.Admit(c), 4);
  EXPECT_EQ(f.Blocks(c)[0], 1);
}

TEST(KVCacheManagerTest, CacheSaltSeparatesEqualPrompts) {
  ManagerFixture f(20);
  Request a(MakeCore(1, Iota(0, 9), "one")), b(MakeCore(2, Iota(0, 9), "two"));
  Request c(MakeCore(3, Iota(0, 9), "one")), d(MakeCore(4, Iota(0, 9)));
  EXPECT_EQ(f.Admit(a), 0);
  EXPECT_EQ(f.Admit(b), 0);
  EXPECT_EQ(f.Admit(c), 8);
  EXPECT_EQ(f.Admit(d), 0);
}

TEST(KVCacheManagerTest, PromptLogprobsDisableCacheReadsButNotWrites) {
  ManagerFixture f(20);
  auto core = MakeCore(1, Iota(0, 9));
  core->sampling_params.prompt_logprobs = 0;
  Request a(core);
  EXPECT_EQ(f.Admit(a), 0);
  Request b(MakeCore(2, Iota(0, 9)));
  EXPECT_EQ(f.Admit(b), 8);
  auto again = MakeCore(3, Iota(0, 9));
  again->sampling_params.prompt_logprobs = 5;
  Request c(again);
  EXPECT_EQ(f.Admit(c), 0);
}

TEST(KVCacheManagerTest, SkipReadingPrefixCacheDisablesCacheReads) {
  ManagerFixture f(20);
  Request a(MakeCore(1, Iota(0, 9)));
  f.Admit(a);
  auto core = MakeCore(2, Iota(0, 9));
  core->sampling_params.skip_reading_prefix_cache = true;
  Request b(core);
  EXPECT_EQ(f.Admit(b), 0);
}

TEST(KVCacheManagerTest, WithoutCachingNothingHitsAndTheLastFreedBlockIsReusedFirst) {
  ManagerFixture f(5, false);
  Request a(MakeCore(1, Iota(0, 9)));
  f.Admit(a);
  f.manager.Free(a);
  EXPECT_EQ(FreeIds(f.manager.pool()), (V{3, 2, 1, 4, 5}));
  Request b(MakeCore(2, Iota(0, 9)));
  EXPECT_EQ(f.Admit(b), 0);
  EXPECT_EQ(f.manager.prefix_cache_stats().requests, 0);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, FullSequenceMustFitEvenIfOnlyAChunkIsAllocated) {
  ManagerFixture f(3);
  Request request(MakeCore(1, Iota(0, 16)));
  EXPECT_FALSE(f.manager.AllocateSlots(request, 4, {}, {.full_sequence_must_fit = true}));
  EXPECT_TRUE(f.manager.AllocateSlots(request, 4, {}, {.full_sequence_must_fit = false}));
  EXPECT_EQ(f.Blocks(request).size(), 1u);
}

TEST(KVCacheManagerTest, ChunkPublishesOnlyTheBlocksThatItFills) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 16)));
  EXPECT_TRUE(f.manager.AllocateSlots(a, 6, {}, {}));
  a.num_computed_tokens = 6;
  EXPECT_EQ(f.manager.pool().num_cached_blocks(), 1);
  EXPECT_TRUE(f.manager.AllocateSlots(a, 6));
  EXPECT_EQ(f.manager.pool().num_cached_blocks(), 3);
}

TEST(KVCacheManagerTest, UsageIsTheFractionOfBlocksInUse) {
  ManagerFixture f(4);
  EXPECT_EQ(f.manager.usage(), 0.0);
  Request a(MakeCore(1, Iota(0, 4)));
  f.Admit(a);
  EXPECT_DOUBLE_EQ(f.manager.usage(), 0.25);
  f.manager.Free(a);
  EXPECT_EQ(f.manager.usage(), 0.0);
}

TEST(KVCacheManagerTest, ResetNeedsAllBlocksFree) {
  ManagerFixture f(4);
  Request a(MakeCore(1, Iota(0, 9)));
  f.Admit(a);
  EXPECT_FALSE(f.manager.ResetPrefixCache());
  f.manager.Free(a);
  EXPECT_TRUE(f.manager.ResetPrefixCache());
  Request b(MakeCore(2, Iota(0, 9)));
  EXPECT_EQ(f.Admit(b), 0);
}

TEST(KVCacheManagerTest, StatsCountTokensLookedUpAndFound) {
  ManagerFixture f(20);
  Request a(MakeCore(1, Iota(0, 9)));
  f.manager.RecordPrefixCacheStats(a, 0);
  Request b(MakeCore(2, Iota(0, 9)));
  f.manager.RecordPrefixCacheStats(b, 8);
  EXPECT_EQ(f.manager.prefix_cache_stats().requests, 2);
  EXPECT_EQ(f.manager.prefix_cache_stats().queries, 18);
  EXPECT_EQ(f.manager.prefix_cache_stats().hits, 8);
}

TEST(KVCacheManagerTest, PoisonedBlocksAndTheirDescendantsAreNotFoundAgain) {
  ManagerFixture f(20);
  Request poisoned(MakeCore(1, Iota(0, 9)));
  f.Admit(poisoned);
  // Another request builds on the poisoned prefix before the NaN is noticed.
  Request victim(MakeCore(2, Iota(0, 17)));
  EXPECT_EQ(f.Admit(victim), 8);
  f.manager.EvictPublishedBy(1);
  f.manager.Free(poisoned);
  Request clean(MakeCore(3, Iota(0, 9)));
  EXPECT_EQ(f.Admit(clean), 0);
  // `clean` publishes the prefix again, but the blocks that `victim` computed after the poisoned prefix stay hidden.
  Request longer(MakeCore(4, Iota(0, 17)));
  EXPECT_EQ(f.Admit(longer), 8);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, HashCollisionsDoNotChangeHits) {
  ManagerFixture normal(12), colliding(12, true, &ConstantHash);
  uint64_t random = 1;
  std::vector<std::unique_ptr<Request>> in_normal, in_colliding;
  for (RequestId id = 1; id <= 400; ++id) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    auto core = MakeCore(id, Iota(static_cast<int32_t>(random >> 33) % 3, 4 + static_cast<int64_t>(random >> 40) % 16),
                         random >> 63 ? "s" : "");
    core->prompt_token_ids.back() = static_cast<int32_t>(random >> 50) % 2;
    auto a = std::make_unique<Request>(core), b = std::make_unique<Request>(core);
    const int64_t hit = normal.Admit(*a);
    EXPECT_EQ(hit, colliding.Admit(*b)) << id;
    EXPECT_EQ(normal.Blocks(*a), colliding.Blocks(*b)) << id;
    if (hit >= 0) {
      in_normal.push_back(std::move(a));
      in_colliding.push_back(std::move(b));
    }
    if (hit < 0 || in_normal.size() > 3) {
      normal.manager.Free(*in_normal.front());
      colliding.manager.Free(*in_colliding.front());
      in_normal.erase(in_normal.begin());
      in_colliding.erase(in_colliding.begin());
    }
    ASSERT_EQ(FreeIds(normal.manager.pool()), FreeIds(colliding.manager.pool()));
  }
  EXPECT_EQ(colliding.manager.CheckIntegrity(), "");
}

// The blocks [first, end) of group 0.
std::vector<SequenceBlock> BlocksOf(int64_t first, int64_t end) {
  std::vector<SequenceBlock> blocks;
  for (int64_t index = first; index < end; ++index) blocks.push_back({0, index});
  return blocks;
}

TEST(KVCacheManagerTest, LoadedBlocksAreHitsAndFree) {
  ManagerFixture f(10);
  Request request(MakeCore(1, Iota(0, 13)));
  std::vector<size_t> copied;
  const auto copy = [&](size_t i, int32_t /*block_id*/) { copied.push_back(i); };
  EXPECT_EQ(f.manager.InsertLoadedBlocks(request, 0, BlocksOf(0, 3), copy), 3);
  EXPECT_EQ(copied, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(f.manager.pool().num_free_blocks(), 10);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
  EXPECT_EQ(f.Admit(request), 12);
  EXPECT_EQ(f.manager.PublishedBlocks(request, 12).size(), 3u);
}

TEST(KVCacheManagerTest, LoadedBlocksThatAreCachedAreNotFilledAgain) {
  ManagerFixture f(10);
  Request a(MakeCore(1, Iota(0, 9)));
  f.Admit(a);
  Request b(MakeCore(2, Iota(0, 13)));
  std::vector<size_t> copied;
  const auto copy = [&](size_t i, int32_t /*block_id*/) { copied.push_back(i); };
  EXPECT_EQ(f.manager.InsertLoadedBlocks(b, 1, BlocksOf(1, 3), copy), 1);
  EXPECT_EQ(copied, (std::vector<size_t>{1}));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, LoadedBlocksWhosePrefixWasEvictedAreDropped) {
  ManagerFixture f(10);
  Request request(MakeCore(1, Iota(0, 13)));
  EXPECT_EQ(f.manager.InsertLoadedBlocks(request, 1, BlocksOf(1, 3), [](size_t, int32_t) { FAIL(); }), 0);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, LoadedBlocksDoNotEvictTheirPrefix) {
  ManagerFixture f(2);
  Request request(MakeCore(1, Iota(0, 13)));
  EXPECT_EQ(f.manager.InsertLoadedBlocks(request, 0, BlocksOf(0, 3), [](size_t, int32_t) {}), 2);
  EXPECT_EQ(f.manager.GetComputedBlocks(request).num_tokens, 8);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, BlocksOfAFailedRequestAreNotPublished) {
  ManagerFixture f(10);
  Request request(MakeCore(1, Iota(0, 9)));
  f.Admit(request);
  EXPECT_EQ(f.manager.PublishedBlocks(request, 9).size(), 2u);
  f.manager.EvictPublishedBy(1);
  EXPECT_TRUE(f.manager.PublishedBlocks(request, 9).empty());
}

// Blocks of 4 tokens in a group with full attention and one with a window of 6 tokens, of which a token attends to 5.
TEST(KVCacheManagerTest, BlocksThatAWindowHasPassedAreReported) {
  CacheConfig cache;
  cache.block_size = 4;
  cache.num_blocks = 20;
  cache.group_windows = {0, 6};
  KVCacheManager manager(cache, 100);
  std::vector<SequenceBlock> skipped;
  manager.SetSkipListener([&](Request& request, std::span<const SequenceBlock> blocks) {
    EXPECT_EQ(request.id(), 1u);
    skipped.insert(skipped.end(), blocks.begin(), blocks.end());
  });
  Request request(MakeCore(1, Iota(0, 20)));
  ASSERT_TRUE(manager.AllocateSlots(request, 16, manager.GetComputedBlocks(request), {}));
  EXPECT_TRUE(skipped.empty());
  const auto window_ids = manager.Blocks(1, 1);
  const std::vector<SequenceBlock> expected = {{1, 0, window_ids[0]->block_id}, {1, 1, window_ids[1]->block_id}};
  request.num_computed_tokens = 16;
  ASSERT_TRUE(manager.AllocateSlots(request, 4));
  EXPECT_EQ(skipped, expected);
  // Blocks 0 to 4 of the first group, and 2 to 4 of the second.
  EXPECT_EQ(manager.PublishedBlocks(request, 20).size(), 5u + 3u);
  EXPECT_EQ(manager.CheckIntegrity(), "");
}

TEST(KVCacheManagerTest, LoadedBlocksOfAWindowAreHits) {
  CacheConfig cache;
  cache.block_size = 4;
  cache.num_blocks = 20;
  cache.group_windows = {0, 6};
  KVCacheManager manager(cache, 100);
  Request request(MakeCore(1, Iota(0, 20)));
  // Tokens after the first 12 attend to the last two blocks of the window's group.
  const std::vector<SequenceBlock> blocks = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}};
  std::vector<size_t> copied;
  EXPECT_EQ(manager.InsertLoadedBlocks(request, 0, blocks, [&](size_t i, int32_t) { copied.push_back(i); }), 3);
  EXPECT_EQ(copied, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(manager.GetComputedBlocks(request).num_tokens, 12);
  EXPECT_EQ(manager.CheckIntegrity(), "");
}

}  // namespace
}  // namespace vllm
