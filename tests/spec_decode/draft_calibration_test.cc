#include "engine/spec_decode/draft_calibration.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace vllm {
namespace {

using RequestRecord = DraftCalibration::RequestRecord;

TEST(DraftCalibrationTest, StartsWithTheEstimate) {
  const DraftCalibration calibration;
  EXPECT_DOUBLE_EQ(calibration.Probability(0.5, {}), 0.5);
  EXPECT_DOUBLE_EQ(calibration.Probability(1.0, {}), 1.0);
}

TEST(DraftCalibrationTest, LearnsHowOftenSuchDraftsAreAccepted) {
  DraftCalibration calibration;
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    RequestRecord record;
    // Of drafts with the estimate 0.9, half are accepted, and of those with 0.2, all.
    calibration.Add(std::vector<float>{0.9f}, random() % 2, record);
    calibration.Add(std::vector<float>{0.2f}, 1, record);
  }
  EXPECT_NEAR(calibration.Probability(0.9, {}), 0.5, 0.1);
  EXPECT_NEAR(calibration.Probability(0.2, {}), 1.0, 0.05);
  EXPECT_DOUBLE_EQ(calibration.Probability(0.7, {}), 0.7);
}

TEST(DraftCalibrationTest, DraftsAfterARejectedOneAreNotCounted) {
  DraftCalibration calibration;
  RequestRecord record;
  calibration.Add(std::vector<float>{0.5f, 0.9f, 0.9f}, 0, record);
  EXPECT_LT(calibration.Probability(0.5, {}), 0.5);
  EXPECT_DOUBLE_EQ(calibration.Probability(0.9, {}), 0.9);
}

TEST(DraftCalibrationTest, ARequestDiffersFromTheOthers) {
  DraftCalibration calibration;
  RequestRecord good, bad;
  for (int i = 0; i < 100; ++i) {
    calibration.Add(std::vector<float>{0.6f}, 1, good);
    calibration.Add(std::vector<float>{0.6f}, 0, bad);
  }
  EXPECT_GT(calibration.Probability(0.6, good), 0.8);
  EXPECT_LT(calibration.Probability(0.6, bad), 0.2);
  // After many steps in which nothing was drafted, it is tried again.
  for (int i = 0; i < 1000; ++i) DraftCalibration::Forget(bad);
  EXPECT_NEAR(calibration.Probability(0.6, bad), calibration.Probability(0.6, {}), 1e-3);
}

}  // namespace
}  // namespace vllm
