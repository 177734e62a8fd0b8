#include "engine/layers/attention/kv_cache_groups.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace vllm {
namespace {

using V = std::vector<int64_t>;

std::vector<KVCacheSpec> Layers(const V& windows) {
  std::vector<KVCacheSpec> layers;
  for (const int64_t window : windows) layers.push_back({2, 64, window});
  return layers;
}

// Expects the layers of a group to have different tensors, each with the shape of its layer. A layer's window must be
// that of its group, unless the group has full attention.
void ExpectValid(const std::vector<KVCacheSpec>& layers, const KVCacheGroups& groups) {
  ASSERT_EQ(groups.layers.size(), layers.size());
  std::set<std::pair<size_t, size_t>> places;
  for (size_t i = 0; i < layers.size(); ++i) {
    const KVLayerPlace place = groups.layers[i];
    ASSERT_LT(place.group, groups.windows.size());
    ASSERT_LT(place.tensor, groups.tensors.size());
    EXPECT_TRUE(places.emplace(place.group, place.tensor).second) << i;
    EXPECT_TRUE(groups.windows[place.group] == layers[i].sliding_window || groups.windows[place.group] == 0);
    EXPECT_EQ(groups.tensors[place.tensor].num_kv_heads, layers[i].num_kv_heads);
    EXPECT_EQ(groups.tensors[place.tensor].head_dim, layers[i].head_dim);
  }
}

TEST(KVCacheGroupsTest, LayersOfOneKindFormOneGroupWithOneTensorPerLayer) {
  for (const int64_t window : {0, 128}) {
    const auto layers = Layers(V(5, window));
    const KVCacheGroups groups = MakeKVCacheGroups(layers);
    ExpectValid(layers, groups);
    EXPECT_EQ(groups.windows, V{window});
    EXPECT_EQ(groups.tensors.size(), 5u);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(groups.layers[i].tensor, i);
    EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kFloat32), 5 * 2 * 16 * (64 + 64) * 4);
  }
}

TEST(KVCacheGroupsTest, BlocksOfLatentAttentionHaveOneVectorPerToken) {
  const std::vector<KVCacheSpec> layers(3, {.num_kv_heads = 1, .head_dim = 576, .value_dim = 512});
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ExpectValid(layers, groups);
  EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kBFloat16), 3 * 16 * 576 * 2);
}

TEST(KVCacheGroupsTest, FullAttentionComesFirstAndTheRarestKindSetsTheGroupSize) {
  // As in Gemma 3, every sixth layer has full attention.
  V windows;
  for (int i = 0; i < 26; ++i) windows.push_back(i % 6 == 5 ? 0 : 512);
  const auto layers = Layers(windows);
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ExpectValid(layers, groups);
  // There are four full-attention layers and 22 sliding-window layers, in groups of up to four.
  EXPECT_EQ(groups.windows, (V{0, 512, 512, 512, 512, 512, 512}));
  EXPECT_EQ(groups.tensors.size(), 4u);
  EXPECT_EQ(groups.layers[5].group, 0u);
  EXPECT_EQ(groups.layers[11].tensor, 1u);
}

TEST(KVCacheGroupsTest, KindsWithSimilarLayerCountsArePaddedToTheLargerCount) {
  const auto layers = Layers({9, 0, 9, 0, 9, 0, 9, 0, 9});
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ExpectValid(layers, groups);
  EXPECT_EQ(groups.windows, (V{0, 9}));
  EXPECT_EQ(groups.tensors.size(), 5u);
}

TEST(KVCacheGroupsTest, LayersWithDifferentWindowsAreInDifferentGroups) {
  const auto layers = Layers({32, 0, 32, 100});
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ExpectValid(layers, groups);
  EXPECT_EQ(groups.windows, (V{0, 32, 32, 100}));
  EXPECT_EQ(groups.tensors.size(), 1u);
}

// Returns `count` layers, of which every `period`-th has full attention and the others a window of 512.
std::vector<KVCacheSpec> Interleaved(int64_t count, int64_t period, KVCacheSpec full, KVCacheSpec sliding) {
  std::vector<KVCacheSpec> layers;
  for (int64_t i = 1; i <= count; ++i) layers.push_back(i % period == 0 ? full : sliding);
  return layers;
}

TEST(KVCacheGroupsTest, LayersWithDifferentHeadsAndWindowsArePackedIntoBlocksOfEqualSize) {
  // As in Gemma 4 E2B without the layers that share K and V.
  const auto layers = Interleaved(15, 5, {1, 512, 0}, {1, 256, 512});
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ASSERT_TRUE(groups.is_packed());
  EXPECT_TRUE(groups.tensors.empty());
  EXPECT_EQ(groups.windows, (V{0, 512, 512}));
  EXPECT_EQ(groups.layers[4].group, 0u);
  EXPECT_EQ(groups.layers[14].tensor, 2u);
  EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kBFloat16), 3 * 2 * 16 * 512 * 2);
}

TEST(KVCacheGroupsTest, PackedLayersOfAGroupDoNotOverlap) {
  for (const kernels::KVDType dtype : {kernels::KVDType::kFloat32, kernels::KVDType::kInt8}) {
    const auto layers = Interleaved(31, 6, {2, 40, 0}, {3, 20, 512});
    const KVCacheGroups groups = MakeKVCacheGroups(layers);
    for (size_t i = 0; i < layers.size(); ++i) {
      const int64_t begin = groups.PackedOffset(i, 16, dtype);
      const int64_t end = begin + layers[i].Layout(16, dtype).BlockBytes();
      EXPECT_EQ(begin % 64, 0);
      EXPECT_LE(end, groups.BlockBytes(16, dtype));
      EXPECT_EQ(groups.windows[groups.layers[i].group], layers[i].sliding_window);
      for (size_t j = 0; j < i; ++j) {
        if (groups.layers[j].group != groups.layers[i].group) continue;
        const int64_t other = groups.PackedOffset(j, 16, dtype);
        EXPECT_TRUE(other + layers[j].Layout(16, dtype).BlockBytes() <= begin || other >= end) << i << " " << j;
      }
    }
  }
}

TEST(KVCacheGroupsTest, PackedBlocksAreAtMostHalfAgainAsLargeAsTheSmallestKindNeeds) {
  // As in Gemma 4 26B-A4B: 5 layers of 1024 elements and 25 of 2048. Blocks of 6 * 1024 need fewer groups than blocks
  // of 5 * 1024, in which a fifth of every group with a window would be empty.
  const KVCacheGroups groups = MakeKVCacheGroups(Interleaved(30, 6, {2, 512, 0}, {8, 256, 1024}));
  EXPECT_EQ(groups.windows.size(), 10u);
  EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kBFloat16), 6 * 2 * 16 * 1024 * 2);
}

TEST(KVCacheGroupsTest, LayersWithDifferentHeadsButTheSameWindowFormOneSlidingGroup) {
  auto layers = Layers({32, 32, 32});
  layers[2].head_dim = 40;
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  ExpectValid(layers, groups);
  EXPECT_EQ(groups.windows, V{32});
  EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kFloat32), (2 * 128 + 40 + 48) * 2 * 16 * 4);
}

TEST(KVCacheGroupsTest, Int8BlocksHaveOneBytePerElementAndTwoScalesPerTokenAndHead) {
  const KVCacheGroups groups = MakeKVCacheGroups(Layers(V(5, 0)));
  EXPECT_EQ(groups.BlockBytes(16, kernels::KVDType::kInt8), 5 * 2 * 16 * (64 + 64 + 2 * 4));
}

}  // namespace
}  // namespace vllm
