#include "app/model/calibration/calibration_text.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace vllm::app {
namespace {

using Chunks = std::vector<std::vector<int32_t>>;

std::vector<int32_t> Tokens(size_t count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(CalibrationTextTest, AShortTextIsDividedIntoAllItsCompleteChunks) {
  EXPECT_EQ(CalibrationChunks(Tokens(8), 3, 10), (Chunks{{0, 1, 2}, {3, 4, 5}}));
}

TEST(CalibrationTextTest, ALongTextGivesChunksAtEqualDistances) {
  EXPECT_EQ(CalibrationChunks(Tokens(20), 2, 3), (Chunks{{0, 1}, {6, 7}, {12, 13}}));
}

TEST(CalibrationTextTest, ATextShorterThanAChunkGivesNone) { EXPECT_EQ(CalibrationChunks(Tokens(2), 3, 10), Chunks{}); }

}  // namespace
}  // namespace vllm::app
