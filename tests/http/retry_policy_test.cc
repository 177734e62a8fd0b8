#include "app/http/retry_policy.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RetryPolicy::Clock::time_point kStart{};

TEST(RetryPolicyTest, WaitsDoubleUntilTheRequestFails) {
  RetryPolicy policy;
  auto now = kStart + seconds(1);
  for (const int wait : {250, 500, 1000, 2000, 4000}) {
    ASSERT_TRUE(policy.NoteFailure(nullptr, now));
    EXPECT_EQ(policy.retry_at() - now, milliseconds(wait));
    now = policy.retry_at();
  }
  EXPECT_FALSE(policy.NoteFailure(nullptr, now));
}

TEST(RetryPolicyTest, FailuresDuringTheWaitCountOnce) {
  RetryPolicy policy;
  const auto now = kStart + seconds(1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(policy.NoteFailure(nullptr, now + milliseconds(i)));
  EXPECT_EQ(policy.retry_at() - now, milliseconds(250));
}

TEST(RetryPolicyTest, ProgressForgetsFailures) {
  RetryPolicy policy;
  auto now = kStart + seconds(1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(policy.NoteFailure(nullptr, now));
    policy.NoteProgress();
    now = policy.retry_at();
  }
}

TEST(RetryPolicyTest, OneConnectionThatFailsAfterProgressNeedsNoWait) {
  RetryPolicy policy;
  const auto now = kStart + seconds(1);
  policy.NoteProgress();
  ASSERT_TRUE(policy.NoteFailure(nullptr, now));
  EXPECT_LE(policy.retry_at(), now);
  ASSERT_TRUE(policy.NoteFailure(nullptr, now));
  EXPECT_EQ(policy.retry_at() - now, milliseconds(250));
}

TEST(RetryPolicyTest, ServerDecidesTheWait) {
  RetryPolicy policy;
  HttpHead head(429);
  head.AddLine("Retry-After: 30");
  const auto now = kStart + seconds(1);
  ASSERT_TRUE(policy.NoteFailure(&head, now));
  EXPECT_EQ(policy.retry_at() - now, seconds(30));
}

TEST(RetryPolicyTest, VeryLongWaitIsAFailure) {
  RetryPolicy policy;
  HttpHead head(429);
  head.AddLine("Retry-After: 301");
  EXPECT_FALSE(policy.NoteFailure(&head, kStart + seconds(1)));
}

}  // namespace
}  // namespace vllm::app
