// Tests KV-cache groups with a sliding window, alone and combined with full attention. A block has four tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kv_cache/sliding_window_manager.h"
#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

struct GroupsFixture {
  GroupsFixture(int64_t num_blocks, std::vector<int64_t> windows, int64_t max_chunk = 0)
      : manager(Config(num_blocks, std::move(windows)), 4000, &HashBlockTokens, max_chunk) {}

  static CacheConfig Config(int64_t num_blocks, std::vector<int64_t> windows) {
    CacheConfig config = ManagerFixture::Config(num_blocks, 4, true);
    config.group_windows = std::move(windows);
    return config;
  }

  // Computes the next `count` tokens. If the request has no blocks yet, it first gets the blocks of its cached prefix.
  // Returns false if there are too few blocks.
  bool Run(Request& request, int64_t count) {
    ComputedBlocks computed;
    if (manager.Blocks(request.id()).empty()) computed = manager.GetComputedBlocks(request);
    const int64_t num_cached = computed.num_tokens;
    if (!manager.AllocateSlots(request, count, computed, {.full_sequence_must_fit = false})) return false;
    request.num_computed_tokens += num_cached + count;
    return true;
  }
  int64_t Hit(Request& request) { return manager.GetComputedBlocks(request).num_tokens; }
  V Blocks(const Request& request, size_t group) const { return Ids(manager.Blocks(request.id(), group)); }
  int64_t NumUsedBlocks(const Request& request, size_t group) const {
    const V blocks = Blocks(request, group);
    return static_cast<int64_t>(blocks.size()) - std::count(blocks.begin(), blocks.end(), 0);
  }

  KVCacheManager manager;
};

TEST(SlidingWindowTest, BlocksAreFreedOnceNoLaterTokenAttendsToThem) {
  GroupsFixture f(20, {6});
  Request request(MakeCore(1, Iota(0, 100)));
  EXPECT_TRUE(f.Run(request, 8));
  EXPECT_EQ(f.Blocks(request, 0), (V{1, 2}));
  // The token at position 8 attends to positions 3 to 8.
  EXPECT_TRUE(f.Run(request, 1));
  EXPECT_EQ(f.Blocks(request, 0), (V{1, 2, 3}));
  // The token at position 9 attends to positions 4 to 9.
  EXPECT_TRUE(f.Run(request, 1));
  EXPECT_EQ(f.Blocks(request, 0), (V{0, 2, 3}));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(SlidingWindowTest, ChunkKeepsTheBlocksThatItsFirstTokenAttendsTo) {
  GroupsFixture f(30, {6});
  Request request(MakeCore(1, Iota(0, 100)));
  EXPECT_TRUE(f.Run(request, 10));
  EXPECT_TRUE(f.Run(request, 40));
  const V blocks = f.Blocks(request, 0);
  EXPECT_EQ(blocks.size(), 13u);
  // Position 10 attends to positions 5 to 10, so only the first block is freed, although position 49 needs only the
  // last two.
  EXPECT_EQ(blocks[0], 0);
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), 0), 1);
  EXPECT_TRUE(f.Run(request, 1));
  EXPECT_EQ(f.NumUsedBlocks(request, 0), 2);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(SlidingWindowTest, LongSequenceHoldsAtMostTheWindowAChunkAndOneMoreBlock) {
  const int64_t window = 32;
  for (const int64_t chunk : {1, 5, 16, 64}) {
    GroupsFixture f(400, {0, window}, chunk);
    Request request(MakeCore(1, Iota(0, 1000)));
    int64_t peak = 0;
    while (request.num_computed_tokens < 1000) {
      ASSERT_TRUE(f.Run(request, std::min<int64_t>(chunk, 1000 - request.num_computed_tokens)));
      peak = std::max(peak, f.NumUsedBlocks(request, 1));
      EXPECT_EQ(f.NumUsedBlocks(request, 0), (request.num_computed_tokens + 3) / 4);
    }
    // The limit is the blocks of the window and the chunk, and one more because the window may start inside a block.
    EXPECT_LE(peak, (window - 1 + chunk + 3) / 4 + 1);
    EXPECT_GE(peak, (window - 1 + chunk) / 4);
    EXPECT_EQ(f.manager.CheckIntegrity(), "");
  }
}

TEST(SlidingWindowTest, LongSequenceFitsIntoAPoolForOneWindow) {
  GroupsFixture f(11, {32}, 4);
  Request request(MakeCore(1, Iota(0, 1000)));
  EXPECT_TRUE(f.manager.AllocateSlots(request, 4, {}, {.full_sequence_must_fit = true}));
  request.num_computed_tokens = 4;
  while (request.num_computed_tokens < 1000) ASSERT_TRUE(f.Run(request, 4));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(SlidingWindowTest, BlocksThatLeftTheWindowAreReusedLastAndTailFirst) {
  GroupsFixture f(8, {5});
  Request request(MakeCore(1, Iota(0, 100)));
  EXPECT_TRUE(f.Run(request, 16));
  EXPECT_EQ(f.Blocks(request, 0), (V{1, 2, 3, 4}));
  EXPECT_TRUE(f.Run(request, 1));
  EXPECT_EQ(f.Blocks(request, 0), (V{0, 0, 0, 4, 5}));
  EXPECT_EQ(FreeIds(f.manager.pool()), (V{6, 7, 8, 3, 2, 1}));
}

TEST(SlidingWindowTest, HitNeedsOnlyTheBlocksOfTheWindow) {
  GroupsFixture f(11, {6});
  Request a(MakeCore(1, Iota(0, 40)));
  EXPECT_TRUE(f.Run(a, 20));
  EXPECT_TRUE(f.Run(a, 20));
  f.manager.Free(a);
  // Another request reuses two of a's first three blocks, which left the window.
  Request other(MakeCore(2, Iota(500, 10)));
  EXPECT_TRUE(f.Run(other, 10));
  Request b(MakeCore(3, Iota(0, 41)));
  EXPECT_EQ(f.Hit(b), 40);
  EXPECT_TRUE(f.Run(b, 1));
  // Position 40 attends to positions 35 to 40.
  EXPECT_EQ(f.NumUsedBlocks(b, 0), 3);
  EXPECT_EQ(f.Blocks(b, 0)[7], 0);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(SlidingWindowTest, HitShorterThanTheWindowStartsAtTheFirstToken) {
  GroupsFixture f(30, {50});
  Request a(MakeCore(1, Iota(0, 10)));
  EXPECT_TRUE(f.Run(a, 10));
  Request b(MakeCore(2, Iota(0, 30)));
  EXPECT_EQ(f.Hit(b), 8);
}

// Returns the longest hit of a sequence of ten blocks, of which only those in `cached` are cached. The result has block
// indices, and -1 for the null block.
V HitOf(int64_t window, const V& cached) {
  BlockPool pool(10, 4, true, 10);
  const SlidingWindowManager manager(pool, 0, window, 4);
  std::vector<PrefixNodeId> ids;
  for (int32_t i = 0; i < 10; ++i) {
    const V tokens = Iota(i, 4);
    ids.push_back(pool.prefix_trie().Insert({{1, 2}, ids.empty() ? kEmptyPrefix : ids.back(), tokens, {}}, 1));
    KVCacheBlock* block = pool.GetNewBlock();
    if (std::find(cached.begin(), cached.end(), i) != cached.end()) pool.CacheFullBlock(block, ids.back(), 0, 1);
  }
  std::vector<KVCacheBlock*> hit;
  manager.FindLongestCacheHit(ids, hit);
  V blocks = Ids(hit);
  for (int32_t& id : blocks) --id;
  return blocks;
}

TEST(SlidingWindowTest, LongestHitEndsInARunOfBlocksThatCoversTheWindow) {
  // With a window of 10, the next token attends to the nine tokens before it, which are in three blocks.
  EXPECT_EQ(HitOf(10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), (V{-1, -1, -1, -1, -1, -1, -1, 7, 8, 9}));
  EXPECT_EQ(HitOf(10, {3, 4, 5, 7, 8}), (V{-1, -1, -1, 3, 4, 5}));
  EXPECT_EQ(HitOf(10, {0, 1, 3, 4, 6, 9}), (V{0, 1}));
  EXPECT_EQ(HitOf(10, {1, 2, 4, 5, 7, 8}), V());
  // With a window of 9, the eight earlier tokens are in two blocks. With a window of 1, no earlier token matters.
  EXPECT_EQ(HitOf(9, {1, 2, 4, 5, 7}), (V{-1, -1, -1, -1, 4, 5}));
  EXPECT_EQ(HitOf(1, {}), V(10, -1));
}

TEST(SlidingWindowTest, EqualWindowAfterADifferentPrefixIsNotAHit) {
  GroupsFixture f(40, {6});
  Request a(MakeCore(1, Iota(0, 40)));
  EXPECT_TRUE(f.Run(a, 40));
  auto tokens = Iota(0, 41);
  tokens[1] = 77;
  Request b(MakeCore(2, tokens));
  // The window has the same tokens as the window of `a`, but they follow a different prefix.
  EXPECT_EQ(f.Hit(b), 0);
}

TEST(HybridTest, HitIsTheLongestPrefixFromWhichAllGroupsCanContinue) {
  GroupsFixture f(40, {0, 6});
  Request a(MakeCore(1, Iota(0, 40)));
  EXPECT_TRUE(f.Run(a, 40));
  f.manager.Free(a);
  // The free queue contains the unused blocks, then a's full-attention blocks, then a's window blocks, both tail first.
  Request longer(MakeCore(2, Iota(0, 60)));
  EXPECT_EQ(f.Hit(longer), 40);
  Request other(MakeCore(3, Iota(500, 44)));
  // This request takes the 20 unused blocks and a's last two full-attention blocks.
  EXPECT_TRUE(f.Run(other, 44));
  EXPECT_EQ(f.Hit(longer), 32);
  EXPECT_TRUE(f.Run(longer, 4));
  const V window = f.Blocks(longer, 1);
  EXPECT_EQ(std::count(window.begin(), window.end(), 0), 6);
  EXPECT_EQ(f.NumUsedBlocks(longer, 0), 9);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(HybridTest, MissingWindowBlocksShortenTheHitOfFullAttention) {
  GroupsFixture f(60, {0, 6, 10});
  Request a(MakeCore(1, Iota(0, 40)));
  // With chunks of one block, each window group keeps few blocks but publishes all ten.
  while (a.num_computed_tokens < 40) EXPECT_TRUE(f.Run(a, 4));
  const V middle = f.Blocks(a, 2);
  EXPECT_EQ(std::count(middle.begin(), middle.end(), 0), 6);
  Request b(MakeCore(2, Iota(0, 30)));
  EXPECT_EQ(f.Hit(b), 28);
  // Another request reuses 12 of the 13 free blocks of the window groups. The full-attention blocks remain, but b has
  // no hit.
  Request other(MakeCore(3, Iota(500, 56)));
  EXPECT_TRUE(f.Run(other, 56));
  EXPECT_EQ(f.Hit(b), 0);
  Request c(MakeCore(4, Iota(0, 45)));
  EXPECT_EQ(f.Hit(c), 40);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(HybridTest, PoisonedBlocksAndResetAffectAllGroups) {
  GroupsFixture f(60, {0, 6});
  Request a(MakeCore(1, Iota(0, 13))), b(MakeCore(2, Iota(100, 13)));
  EXPECT_TRUE(f.Run(a, 13));
  EXPECT_TRUE(f.Run(b, 13));
  EXPECT_EQ(f.manager.pool().num_cached_blocks(), 12);
  f.manager.EvictPublishedBy(1);
  EXPECT_EQ(f.manager.pool().num_cached_blocks(), 6);
  f.manager.Free(a);
  EXPECT_FALSE(f.manager.ResetPrefixCache());
  f.manager.Free(b);
  EXPECT_TRUE(f.manager.ResetPrefixCache());
  EXPECT_EQ(f.manager.pool().num_cached_blocks(), 0);
  EXPECT_EQ(f.manager.pool().prefix_trie().size(), 0);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(HybridTest, PoisonedBlockOutsideTheWindowHidesItsDescendants) {
  GroupsFixture f(8, {6});
  Request poisoned(MakeCore(1, Iota(0, 40)));
  EXPECT_TRUE(f.Run(poisoned, 16));
  Request victim(MakeCore(2, Iota(0, 40)));
  EXPECT_EQ(f.Hit(victim), 16);
  EXPECT_TRUE(f.Run(victim, 16));
  // The first two blocks of the poisoned request leave its window, and one of them is evicted and reused.
  EXPECT_TRUE(f.Run(poisoned, 1));
  f.manager.EvictPublishedBy(1);
  f.manager.Free(poisoned);
  f.manager.Free(victim);
  Request clean(MakeCore(3, Iota(0, 40)));
  EXPECT_EQ(f.Hit(clean), 0);
  EXPECT_TRUE(f.Run(clean, 4));
  Request next(MakeCore(4, Iota(0, 40)));
  EXPECT_EQ(f.Hit(next), 4);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(HybridTest, ReservationCountsThePeakOfTheWindow) {
  // 100 tokens need 25 blocks for full attention and, with chunks of 8, ceil((5 + 8) / 4) + 1 blocks for the window.
  for (const int64_t num_blocks : {29, 30}) {
    GroupsFixture f(num_blocks, {0, 6}, 8);
    Request request(MakeCore(1, Iota(0, 100)));
    EXPECT_EQ(f.manager.AllocateSlots(request, 8, {}, {.full_sequence_must_fit = true}), num_blocks == 30);
  }
}

TEST(HybridTest, RequestsContinueButStopPublishingWhenTheTrieIsFull) {
  GroupsFixture f(8, {2}, 4);
  Request a(MakeCore(1, Iota(0, 3900))), b(MakeCore(2, Iota(10000, 3900)));
  for (int i = 0; i < 975; ++i) {
    ASSERT_TRUE(f.Run(a, 4));
    ASSERT_TRUE(f.Run(b, 4));
  }
  const PrefixTrie& prefix_trie = f.manager.pool().prefix_trie();
  EXPECT_EQ(prefix_trie.size(), prefix_trie.capacity());
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
  f.manager.Free(a);
  f.manager.Free(b);
  Request c(MakeCore(3, Iota(0, 9)));
  EXPECT_TRUE(f.Run(c, 9));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
  f.manager.Free(c);
  EXPECT_TRUE(f.manager.ResetPrefixCache());
  EXPECT_EQ(prefix_trie.size(), 0);
}

}  // namespace
}  // namespace vllm
