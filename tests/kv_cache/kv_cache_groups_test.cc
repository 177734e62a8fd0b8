#include "engine/kv_cache/kv_cache_groups.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "engine/kv_cache/kv_cache_demand.h"

namespace vllm {
namespace {

using V = std::vector<int64_t>;

std::vector<KvLayerSpec> Layers(const V& windows) {
  std::vector<KvLayerSpec> layers;
  for (const int64_t window : windows) layers.push_back({2, 64, window});
  return layers;
}

// Every layer of a group has a tensor of its own, and a group is of one window.
void ExpectSound(const std::vector<KvLayerSpec>& layers, const KvCacheGroups& groups) {
  ASSERT_EQ(groups.layers.size(), layers.size());
  std::set<std::pair<size_t, size_t>> places;
  for (size_t i = 0; i < layers.size(); ++i) {
    const KvLayerPlace place = groups.layers[i];
    ASSERT_LT(place.group, groups.windows.size());
    ASSERT_LT(place.tensor, groups.tensors.size());
    EXPECT_TRUE(places.emplace(place.group, place.tensor).second) << i;
    EXPECT_TRUE(groups.windows[place.group] == layers[i].sliding_window || groups.windows[place.group] == 0);
    EXPECT_EQ(groups.tensors[place.tensor].num_kv_heads, layers[i].num_kv_heads);
    EXPECT_EQ(groups.tensors[place.tensor].head_dim, layers[i].head_dim);
  }
}

TEST(KvCacheGroupsTest, OneKindIsOneGroupWithATensorALayer) {
  for (const int64_t window : {0, 128}) {
    const auto layers = Layers(V(5, window));
    const KvCacheGroups groups = MakeKvCacheGroups(layers);
    ExpectSound(layers, groups);
    EXPECT_EQ(groups.windows, V{window});
    EXPECT_EQ(groups.tensors.size(), 5u);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(groups.layers[i].tensor, i);
    EXPECT_EQ(groups.BlockBytes(16, DType::kFloat32), 5 * 2 * 16 * (64 + 64) * 4);
  }
}

TEST(KvCacheGroupsTest, FullAttentionComesFirstAndGroupsAreOfTheRarestKindsSize) {
  // As Gemma 3: five sliding layers, then a full one.
  V windows;
  for (int i = 0; i < 26; ++i) windows.push_back(i % 6 == 5 ? 0 : 512);
  const auto layers = Layers(windows);
  const KvCacheGroups groups = MakeKvCacheGroups(layers);
  ExpectSound(layers, groups);
  // Four full layers and 22 sliding ones, in groups of four.
  EXPECT_EQ(groups.windows, (V{0, 512, 512, 512, 512, 512, 512}));
  EXPECT_EQ(groups.tensors.size(), 4u);
  EXPECT_EQ(groups.layers[5].group, 0u);
  EXPECT_EQ(groups.layers[11].tensor, 1u);
}

TEST(KvCacheGroupsTest, NearlyEqualKindsArePaddedToTheLarger) {
  const auto layers = Layers({9, 0, 9, 0, 9, 0, 9, 0, 9});
  const KvCacheGroups groups = MakeKvCacheGroups(layers);
  ExpectSound(layers, groups);
  EXPECT_EQ(groups.windows, (V{0, 9}));
  EXPECT_EQ(groups.tensors.size(), 5u);
}

TEST(KvCacheGroupsTest, EachWindowIsAKind) {
  const auto layers = Layers({32, 0, 32, 100});
  const KvCacheGroups groups = MakeKvCacheGroups(layers);
  ExpectSound(layers, groups);
  EXPECT_EQ(groups.windows, (V{0, 32, 32, 100}));
  EXPECT_EQ(groups.tensors.size(), 1u);
}

TEST(KvCacheGroupsTest, DifferentHeadsUnderDifferentWindowsKeepWholeSequences) {
  auto layers = Layers({32, 0, 32, 0});
  layers[2].num_kv_heads = 4;
  const KvCacheGroups groups = MakeKvCacheGroups(layers);
  ExpectSound(layers, groups);
  EXPECT_EQ(groups.windows, V{0});
  EXPECT_EQ(groups.tensors.size(), 4u);
  EXPECT_EQ(groups.BlockBytes(16, DType::kBFloat16), (2 + 2 + 4 + 2) * 16 * 128 * 2);
}

TEST(KvCacheGroupsTest, DifferentHeadsUnderOneWindowSlide) {
  auto layers = Layers({32, 32, 32});
  layers[2].head_dim = 40;
  const KvCacheGroups groups = MakeKvCacheGroups(layers);
  ExpectSound(layers, groups);
  EXPECT_EQ(groups.windows, V{32});
  EXPECT_EQ(groups.BlockBytes(16, DType::kFloat32), (2 * 128 + 40 + 48) * 2 * 16 * 4);
}

CacheConfig Cache(int64_t num_blocks, V windows) {
  CacheConfig cache;
  cache.num_blocks = num_blocks;
  cache.group_windows = std::move(windows);
  return cache;
}

TEST(KvCacheDemandTest, FullAttentionHoldsTheWholeSequence) {
  EXPECT_EQ(PeakBlocks(Cache(10, {0}), 100, 64), 7);
  EXPECT_EQ(MaxTokensThatFit(Cache(10, {0}), 64), 160);
  EXPECT_EQ(MaxTokensThatFit(Cache(10, {0, 0}), 64), 80);
}

TEST(KvCacheDemandTest, AWindowHoldsItselfAChunkAndABlockMore) {
  // 31 tokens before and 64 of the chunk: six blocks and one.
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 1000, 64), 7);
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 100, 64), 7);
  EXPECT_EQ(PeakBlocks(Cache(10, {32}), 90, 64), 6);
  EXPECT_EQ(PeakBlocks(Cache(10, {0, 32, 32}), 1000, 1), 63 + 3 + 3);
  EXPECT_EQ(MaxTokensThatFit(Cache(7, {32}), 64), kUnlimitedTokens);
  EXPECT_EQ(MaxTokensThatFit(Cache(6, {32}), 64), 96);
  EXPECT_EQ(MaxTokensThatFit(Cache(20, {0, 32}), 64), 13 * 16);
  EXPECT_EQ(MaxTokensThatFit(Cache(2, {0, 32, 32}), 64), 0);
}

TEST(KvCacheDemandTest, TheLongestSequenceThatFitsDoesAndOneTokenMoreDoesNot) {
  for (const V& windows : {V{0}, V{40}, V{0, 40}, V{0, 40, 40, 300}, V{17, 90}}) {
    for (const int64_t chunk : {1, 16, 100, 2048}) {
      for (int64_t num_blocks = 1; num_blocks < 200; num_blocks += 7) {
        const CacheConfig cache = Cache(num_blocks, windows);
        const int64_t tokens = MaxTokensThatFit(cache, chunk);
        EXPECT_LE(PeakBlocks(cache, tokens, chunk), num_blocks);
        const int64_t more = tokens < kUnlimitedTokens ? tokens + 1 : tokens;
        EXPECT_EQ(PeakBlocks(cache, more, chunk) > num_blocks, tokens < kUnlimitedTokens);
      }
    }
  }
}

TEST(KvCacheDemandTest, AChunkIsWhatTheBudgetAndTheThresholdAllow) {
  SchedulerConfig scheduler;
  scheduler.max_num_batched_tokens = 100;
  EXPECT_EQ(MaxChunk(scheduler), 100);
  scheduler.long_prefill_token_threshold = 30;
  EXPECT_EQ(MaxChunk(scheduler), 30);
  scheduler.long_prefill_token_threshold = 300;
  EXPECT_EQ(MaxChunk(scheduler), 100);
}

}  // namespace
}  // namespace vllm
