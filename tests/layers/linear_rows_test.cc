#include "engine/layers/linear/linear_rows.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace vllm {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Ranges RangesOf(const std::vector<OutputSlice>& all, const std::vector<OutputSlice>& own) {
  Ranges ranges;
  for (const Shard& range : StackedRanges(all, own)) ranges.emplace_back(range.begin, range.count);
  return ranges;
}

TEST(LinearRowsTest, AllRowsAreOneRange) {
  const std::vector<OutputSlice> all = {{"q", 64, {0, 64}}, {"k", 32, {0, 32}}, {"v", 32, {0, 32}}};
  EXPECT_EQ(RangesOf(all, all), (Ranges{{0, 128}}));
}

TEST(LinearRowsTest, RowsOfARankAreFoundInTheSlicesOfTheSameName) {
  const std::vector<OutputSlice> all = {{"q", 64, {0, 64}}, {"k", 32, {0, 32}}, {"v", 32, {0, 32}}};
  EXPECT_EQ(RangesOf(all, {{"q", 64, {32, 32}}, {"k", 32, {16, 16}}, {"v", 32, {16, 16}}}),
            (Ranges{{32, 32}, {80, 16}, {112, 16}}));
}

TEST(LinearRowsTest, ASliceOfARankMayCoverSeveralSlices) {
  // Two parts of one tensor that are apart in the stacked rows, and a third one that is next to the second.
  const std::vector<OutputSlice> all = {{"x", 48, {0, 16}}, {"y", 8, {0, 8}}, {"x", 48, {16, 16}}, {"x", 48, {32, 16}}};
  EXPECT_EQ(RangesOf(all, {{"x", 48, {8, 30}}}), (Ranges{{8, 8}, {24, 22}}));
}

TEST(LinearRowsTest, SharesOfRowsBeginAtPanelsIfThereAreEnough) {
  for (const int64_t total : {64, 100, 896, 151936}) {
    for (const int world_size : {1, 2, 3, 4}) {
      int64_t next = 0;
      for (const Shard& shard : ShardsOfRows(total, world_size)) {
        EXPECT_EQ(shard.begin, next);
        EXPECT_EQ(shard.begin % 16, 0);
        EXPECT_GT(shard.count, 0);
        next += shard.count;
      }
      EXPECT_EQ(next, total);
    }
  }
  // 44 rows have three panels, which are too few for four ranks.
  for (const Shard& shard : ShardsOfRows(44, 4)) EXPECT_EQ(shard.count, 11);
}

}  // namespace
}  // namespace vllm
