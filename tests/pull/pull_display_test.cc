#include "app/hub/pull/pull_display.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

using std::chrono::seconds;

PullProgress Progress(int64_t done, int64_t total) {
  PullProgress progress;
  progress.done_bytes = done;
  progress.total_bytes = total;
  return progress;
}

TEST(PullDisplayTest, TextHasShareBytesRateAndTimeLeft) {
  EXPECT_EQ(PullProgressText(Progress(1'200'000'000, 2'900'000'000), 35.1e6),
            "41 %, 1.2 GB of 2.9 GB, 35.1 MB/s, 48 s left");
}

TEST(PullDisplayTest, UnknownsAreLeftOut) {
  EXPECT_EQ(PullProgressText(Progress(0, 100), std::nullopt), "0 %, 0 B of 100 B");
  EXPECT_EQ(PullProgressText(Progress(50, 100), 0.0), "50 %, 50 B of 100 B, 0 B/s");
}

TEST(PullDisplayTest, UnfinishedDownloadHasLessThanHundredPercent) {
  EXPECT_EQ(PullProgressText(Progress(1'999'999, 2'000'000), std::nullopt), "99 %, 2.0 MB of 2.0 MB");
}

TEST(PullDisplayTest, RateIsThatOfTheLastSeconds) {
  TransferRate rate;
  const TransferRate::Clock::time_point start{};
  rate.Add(start, 0);
  EXPECT_EQ(rate.BytesPerSecond(), std::nullopt);
  for (int i = 1; i <= 100; ++i) rate.Add(start + seconds(i), 1000 * i);
  EXPECT_EQ(rate.BytesPerSecond(), 1000.0);
  for (int i = 1; i <= 10; ++i) rate.Add(start + seconds(100 + i), 100'000);
  EXPECT_EQ(rate.BytesPerSecond(), 0.0);
}

TEST(PullDisplayTest, RateStartsAgainIfBytesAreDiscarded) {
  TransferRate rate;
  const TransferRate::Clock::time_point start{};
  rate.Add(start, 5000);
  rate.Add(start + seconds(2), 100);
  EXPECT_EQ(rate.BytesPerSecond(), std::nullopt);
  rate.Add(start + seconds(3), 300);
  EXPECT_EQ(rate.BytesPerSecond(), 200.0);
}

}  // namespace
}  // namespace vllm::app
