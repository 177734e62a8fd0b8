// Tests the biases that depend on distance: the buckets of MPNet and the slopes of ALiBi.
#include "engine/layers/attention/position_bias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace vllm {
namespace {

// The first distance of each bucket, from MPNetEncoder.relative_position_bucket of transformers 5.23.
TEST(PositionBiasTest, BucketsBeginAtTheDistancesOfTransformers) {
  const std::vector<int64_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  for (int64_t distance = 0; distance <= 1000; ++distance) {
    int64_t bucket = 0;
    while (bucket + 1 < 16 && first[static_cast<size_t>(bucket + 1)] <= distance) ++bucket;
    EXPECT_EQ(RelativeBucket(-distance), bucket) << distance;
    EXPECT_EQ(RelativeBucket(distance), distance > 0 ? 16 + bucket : 0) << distance;
  }
}

// From the code of the paper (arXiv 2108.12409).
TEST(PositionBiasTest, AlibiHasTheSlopesOfThePaper) {
  EXPECT_EQ(AlibiSlopes(1), std::vector<float>({0x1p-8f}));
  EXPECT_EQ(AlibiSlopes(4), std::vector<float>({0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f}));
  EXPECT_EQ(AlibiSlopes(6), std::vector<float>({0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
  const std::vector<float> twelve = AlibiSlopes(12);
  EXPECT_EQ(twelve[7], 0x1p-8f);
  EXPECT_EQ(twelve[8], static_cast<float>(std::sqrt(0.5)));
  EXPECT_EQ(twelve[11], static_cast<float>(std::sqrt(0x1p-7)));
}

TEST(PositionBiasTest, AlibiIsSymmetricAndCoversTheHeadsOfTheRank) {
  EXPECT_EQ(AlibiBias(4, {1, 2}, 2), std::vector<float>({-0x1p-3f, -0x1p-4f, -0.0f, -0x1p-4f, -0x1p-3f, -0x1p-5f,
                                                         -0x1p-6f, -0.0f, -0x1p-6f, -0x1p-5f}));
}

}  // namespace
}  // namespace vllm
