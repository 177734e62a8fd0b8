// Tests the estimate of the time that a batch still needs, with a clock of the test.
#include "app/batch/batch_eta.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

using std::chrono::seconds;

SteadyTime At(int second) { return SteadyTime(seconds(second)); }

// The state of a batch of rows of 100 tokens that has processed `num_tokens`.
BatchWork Work(int64_t num_tokens, double num_rows = 100) {
  return {num_tokens / 100, num_rows, num_tokens / 100 * 100, num_tokens, false};
}

TEST(BatchEtaTest, ConstantSpeedGivesTheExactTime) {
  BatchEta eta(At(0));
  for (int t = 1; t <= 50; ++t) eta.Update(At(t), Work(50 * t));
  ASSERT_TRUE(eta.time_left());
  // 10,000 tokens in all, 2,500 of them done, 50 per second.
  EXPECT_NEAR(eta.time_left()->count(), 150.0, 1e-6);
}

TEST(BatchEtaTest, NothingIsKnownInTheFirstSeconds) {
  BatchEta eta(At(0));
  for (int t = 1; t < 10; ++t) eta.Update(At(t), Work(500 * t));
  EXPECT_EQ(eta.time_left(), std::nullopt);
  eta.Update(At(10), Work(5000));
  EXPECT_TRUE(eta.time_left());
}

TEST(BatchEtaTest, NothingIsKnownBeforeTwoPercentOfTheRows) {
  BatchEta eta(At(0));
  eta.Update(At(100), Work(100));
  EXPECT_EQ(eta.time_left(), std::nullopt);
  eta.Update(At(200), Work(200));
  EXPECT_TRUE(eta.time_left());
}

TEST(BatchEtaTest, NeverGrowsAndNeverIsNegative) {
  BatchEta eta(At(0));
  std::optional<Seconds> last;
  int64_t tokens = 0;
  for (int t = 1; t <= 400; ++t) {
    // Faster and slower, and more tokens in the end than expected.
    tokens += t % 50 < 25 ? 60 : 5;
    BatchWork work = Work(tokens);
    work.num_done_row_tokens /= 2;
    eta.Update(At(t), work);
    if (last) {
      ASSERT_TRUE(eta.time_left());
      EXPECT_LE(*eta.time_left(), *last);
    }
    last = eta.time_left();
    EXPECT_GE(last.value_or(Seconds(0)), Seconds(0));
  }
}

TEST(BatchEtaTest, TimeInAPauseDoesNotCount) {
  BatchEta eta(At(0));
  for (int t = 1; t <= 50; ++t) eta.Update(At(t), Work(50 * t));
  const std::optional<Seconds> before = eta.time_left();
  for (int t = 51; t <= 1000; ++t) {
    BatchWork work = Work(2500);
    work.is_paused = true;
    eta.Update(At(t), work);
  }
  EXPECT_EQ(eta.time_left(), before);
  eta.Update(At(1001), Work(2550));
  EXPECT_NEAR(eta.time_left()->count(), 149.0, 1e-6);
}

TEST(BatchEtaTest, UnknownNumberOfRowsGivesNoEstimate) {
  BatchEta eta(At(0));
  for (int t = 1; t <= 50; ++t) eta.Update(At(t), Work(50 * t, 0));
  EXPECT_EQ(eta.time_left(), std::nullopt);
}

}  // namespace
}  // namespace vllm::app
