#include "engine/kv_cache/kv_cache_demand.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace vllm {
namespace {

using V = std::vector<int64_t>;

CacheConfig Cache(int64_t num_blocks, V windows) {
  CacheConfig cache;
  cache.num_blocks = num_blocks;
  cache.group_windows = std::move(windows);
  return cache;
}

TEST(KVCacheDemandTest, FullAttentionKeepsTheWholeSequence) {
  EXPECT_EQ(PeakBlocks(Cache(10, {0}), 100, 64), 7);
  EXPECT_EQ(MaxTokensThatFit(Cache(10, {0}), 64), 160);
  EXPECT_EQ(MaxTokensThatFit(Cache(10, {0, 0}), 64), 80);
}

TEST(KVCacheDemandTest, SlidingWindowKeepsTheWindowAChunkAndOneMoreBlock) {
  // The 31 tokens before the chunk and the 64 tokens of the chunk need six blocks. The window may start in the middle
  // of a block, which adds one.
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 1000, 64), 7);
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 100, 64), 7);
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 90, 64), 6);
  EXPECT_EQ(PeakBlocks(Cache(10, {0, 32, 32}), 1000, 1), 63 + 3 + 3);
  EXPECT_EQ(MaxTokensThatFit(Cache(7, {32}), 64), kUnlimitedTokens);
  EXPECT_EQ(MaxTokensThatFit(Cache(6, {32}), 64), 96);
  EXPECT_EQ(MaxTokensThatFit(Cache(20, {0, 32}), 64), 13 * 16);
  EXPECT_EQ(MaxTokensThatFit(Cache(2, {0, 32, 32}), 64), 0);
}

TEST(KVCacheDemandTest, MaxTokensThatFitIsTheExactLimit) {
  for (const V& windows : {V{0}, V{40}, V{0, 40}, V{0, 40, 40, 300}, V{17, 90}}) {
    for (const int64_t chunk : {1, 16, 100, 2048}) {
      for (int64_t num_blocks = 1; num_blocks < 200; num_blocks += 7) {
        const CacheConfig cache = Cache(num_blocks, windows);
        const int64_t max_tokens = MaxTokensThatFit(cache, chunk);
        EXPECT_LE(PeakBlocks(cache, max_tokens, chunk), num_blocks);
        const int64_t one_more = max_tokens < kUnlimitedTokens ? max_tokens + 1 : max_tokens;
        EXPECT_EQ(PeakBlocks(cache, one_more, chunk) > num_blocks, max_tokens < kUnlimitedTokens);
      }
    }
  }
}

TEST(KVCacheDemandTest, MaxChunkIsTheSmallerOfBudgetAndThreshold) {
  SchedulerConfig scheduler;
  scheduler.max_num_batched_tokens = 100;
  EXPECT_EQ(MaxChunk(scheduler), 100);
  scheduler.long_prefill_token_threshold = 30;
  EXPECT_EQ(MaxChunk(scheduler), 30);
  scheduler.long_prefill_token_threshold = 300;
  EXPECT_EQ(MaxChunk(scheduler), 100);
}

TEST(KVCacheDemandTest, ForksShareTheFullBlocksOfTheirCommonTokens) {
  // 40 common tokens fill two blocks; three forks of 100 tokens have five more each, of which one is not extra.
  EXPECT_EQ(ExtraForkBlocks(Cache(10, {0}), 40, 100, 3, 64), 2 * 5);
  EXPECT_EQ(ExtraForkBlocks(Cache(10, {0}), 40, 100, 1, 64), 0);
  EXPECT_EQ(ExtraForkBlocks(Cache(10, {0, 32}), 40, 10000, 2, 1), 625 - 2 + 3);
  EXPECT_EQ(MaxForkTokensThatFit(Cache(10, {0}), 40, 1, 64), MaxTokensThatFit(Cache(10, {0}), 64));
  EXPECT_EQ(MaxForkTokensThatFit(Cache(10, {0}), 40, 4, 64), 4 * 16);
  EXPECT_EQ(MaxForkTokensThatFit(Cache(9, {0}), 40, 4, 64), 3 * 16);
  EXPECT_EQ(MaxForkTokensThatFit(Cache(30, {32}), 40, 4, 64), kUnlimitedTokens);
}

}  // namespace
}  // namespace vllm
