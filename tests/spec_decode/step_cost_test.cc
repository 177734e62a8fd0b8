#include "engine/spec_decode/step_cost.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(StepCostTest, IsZeroBeforeTheFirstStep) { EXPECT_EQ(StepCost().Estimate(5), 0); }

TEST(StepCostTest, InterpolatesBetweenMeasuredRows) {
  StepCost cost;
  cost.Add(4, 0.010);
  cost.Add(8, 0.014);
  EXPECT_DOUBLE_EQ(cost.Estimate(1), 0.010);
  EXPECT_DOUBLE_EQ(cost.Estimate(4), 0.010);
  EXPECT_DOUBLE_EQ(cost.Estimate(5), 0.011);
  EXPECT_DOUBLE_EQ(cost.Estimate(8), 0.014);
}

TEST(StepCostTest, AssumesALowCostBeyondTheMeasuredRows) {
  StepCost cost;
  cost.Add(10, 0.010);
  EXPECT_GT(cost.Estimate(11), 0.010);
  EXPECT_LT(cost.Estimate(20), 0.015);
}

TEST(StepCostTest, MoreRowsNeverCostLess) {
  StepCost cost;
  for (int i = 0; i < 8; ++i) {
    cost.Add(2, 0.012);
    cost.Add(3, 0.010);
    cost.Add(5, 0.020);
    cost.Add(7, 0.016);
  }
  // Neighbors in the wrong order get their common mean.
  EXPECT_NEAR(cost.Estimate(2), 0.011, 1e-5);
  EXPECT_NEAR(cost.Estimate(3), 0.011, 1e-5);
  EXPECT_DOUBLE_EQ(cost.Estimate(5), cost.Estimate(7));
  for (int64_t rows = 1; rows < 100; ++rows) EXPECT_LE(cost.Estimate(rows), cost.Estimate(rows + 1)) << rows;
}

TEST(StepCostTest, FollowsChangesAndIgnoresMostOfAnOutlier) {
  StepCost cost;
  for (int i = 0; i < 20; ++i) cost.Add(1, 0.010);
  cost.Add(1, 1.0);
  EXPECT_LT(cost.Estimate(1), 0.011);
  for (int i = 0; i < 100; ++i) cost.Add(1, 0.020);
  EXPECT_NEAR(cost.Estimate(1), 0.020, 1e-4);
}

TEST(StepCostTest, OldMeasurementsAreForgotten) {
  StepCost cost;
  cost.Add(1, 0.010);
  cost.Add(9, 0.100);  // one slow step
  EXPECT_DOUBLE_EQ(cost.Estimate(9), 0.100);
  for (int i = 0; i < 100; ++i) cost.Add(1, 0.010);
  EXPECT_LT(cost.Estimate(9), 0.016);
}

TEST(StepCostTest, LargeNumbersOfRowsShareEntries) {
  StepCost cost;
  cost.Add(1000, 0.5);
  cost.Add(64, 0.1);
  cost.Add(63, 0.09);
  EXPECT_DOUBLE_EQ(cost.Estimate(64), 0.1);
  EXPECT_DOUBLE_EQ(cost.Estimate(63), 0.09);
  EXPECT_DOUBLE_EQ(cost.Estimate(960), 0.5);  // 960 to 1023
  EXPECT_LT(cost.Estimate(900), 0.5);
}

}  // namespace
}  // namespace vllm
