// Tests DraftDepth with given times: it drafts while that pays, and pauses otherwise.
#include "engine/spec_decode/draft_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vllm {
namespace {

// A step takes 1 s with any number of rows.
StepCost ConstantCost() {
  StepCost cost;
  for (int i = 0; i < 8; ++i) {
    for (const int64_t rows : {1, 2, 4, 8, 16, 32}) cost.Add(rows, 1.0);
  }
  return cost;
}

// Lets DraftDepth choose for one request in each of num_steps steps. Each draft takes seconds_per_draft, and of those
// of a step the first num_right are accepted. Returns the number of drafts of each step.
std::vector<int64_t> RunSteps(DraftDepth& depth, StepCost& cost, int num_steps, double seconds_per_draft,
                              int64_t num_right) {
  std::vector<int64_t> chosen;
  for (int step = 0; step < num_steps; ++step) {
    const int64_t count = chosen.emplace_back(depth.Choose(1, 8, cost));
    if (count == 0) continue;
    depth.AddTime(count, seconds_per_draft * static_cast<double>(count), cost.Estimate(1));
    for (int64_t i = 0; i < count && i <= num_right; ++i) depth.AddResult(i < num_right);
  }
  return chosen;
}

TEST(DraftDepthTest, AProposerThatTakesNoTimeIsNotLimited) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  EXPECT_EQ(RunSteps(depth, cost, 50, 0.001, 0), std::vector<int64_t>(50, 8));
}

TEST(DraftDepthTest, WithoutAMeasuredStepNothingIsLimited) {
  StepCost cost;
  DraftDepth depth;
  depth.AddTime(8, 100.0, 0.0);
  EXPECT_EQ(depth.Choose(1, 8, cost), 8);
}

TEST(DraftDepthTest, RightDraftsAreMadeAsLongAsTheyPay) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  const std::vector<int64_t> chosen = RunSteps(depth, cost, 200, 0.2, 8);
  // (1 + 8) tokens in 1 + 8 * 0.2 s.
  EXPECT_EQ(std::vector<int64_t>(chosen.end() - 100, chosen.end()), std::vector<int64_t>(100, 8));
}

TEST(DraftDepthTest, FewRightDraftsLimitTheDepth) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  const std::vector<int64_t> chosen = RunSteps(depth, cost, 200, 0.2, 1);
  // Half of the drafts that are compared are accepted: (1 + 0.5) / 1.2 is the best rate, then 1.75 / 1.4.
  for (size_t i = 100; i < chosen.size(); ++i) EXPECT_LE(chosen[i], 2) << i;
}

TEST(DraftDepthTest, WrongDraftsSoonPauseTheProposerForLongerAndLonger) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  const std::vector<int64_t> chosen = RunSteps(depth, cost, 1000, 0.2, 0);
  int64_t num_proposals = 0;
  int64_t num_drafts = 0;
  for (const int64_t count : chosen) {
    num_proposals += count > 0 ? 1 : 0;
    num_drafts += count;
  }
  EXPECT_LE(num_proposals, 16);
  // Less than 1.5 % of the time of the steps.
  EXPECT_LE(0.2 * static_cast<double>(num_drafts), 15.0);
}

TEST(DraftDepthTest, DraftsThatCostMoreThanTheySaveAreNotMadeEvenIfAllAreRight) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  const std::vector<int64_t> chosen = RunSteps(depth, cost, 300, 1.1, 8);
  EXPECT_LE(std::count_if(chosen.begin(), chosen.end(), [](int64_t count) { return count > 0; }), 16);
}

TEST(DraftDepthTest, AfterAPauseRightDraftsAreFoundAgain) {
  StepCost cost = ConstantCost();
  DraftDepth depth;
  RunSteps(depth, cost, 100, 0.2, 0);
  const std::vector<int64_t> chosen = RunSteps(depth, cost, 2000, 0.2, 8);
  EXPECT_EQ(chosen.back(), 8);
}

}  // namespace
}  // namespace vllm
