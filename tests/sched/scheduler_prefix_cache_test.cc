// Tests which requests hit the prefix cache, and which blocks must never be hit.
#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

using Ids = std::vector<RequestId>;
const SchedulerOptions kSmall{.num_blocks = 100, .block_size = 4};

TEST(SchedulerPrefixCacheTest, SecondRequestSkipsTheFullBlocksThatTheFirstComputed) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Step();
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 2);
  ASSERT_EQ(h.output->scheduled_new_reqs.size(), 1u);
  EXPECT_EQ(h.output->scheduled_new_reqs[0].num_computed_tokens, 8);
  EXPECT_EQ(h.output->scheduled_new_reqs[0].block_ids, (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(h.results[2].num_cached_tokens, 8);
  EXPECT_EQ(h.results[1].num_cached_tokens, 0);
}

TEST(SchedulerPrefixCacheTest, RequestsAdmittedInOneStepShareTheirCommonPrefix) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Schedule();
  // A block is published when the step that fills it is scheduled, so request 2 hits the blocks of request 1. In each
  // layer, workers write the KV of all rows before any row attends.
  EXPECT_EQ(h.Scheduled(1), 10);
  EXPECT_EQ(h.Scheduled(2), 2);
}

TEST(SchedulerPrefixCacheTest, BlocksOfFinishedRequestsStayInTheCache) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10), {.max_tokens = 1}));
  h.RunToEnd();
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 2);
}

TEST(SchedulerPrefixCacheTest, NextTurnHitsTheAnswerToo) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 6), {.max_tokens = 8}));
  h.RunToEnd();
  std::vector<int32_t> turn = Iota(0, 6);
  turn.insert(turn.end(), h.results[1].token_ids.begin(), h.results[1].token_ids.end());
  for (int32_t i = 0; i < 5; ++i) turn.push_back(70 + i);
  h.Add(MakeRequest(2, turn));
  h.Step();
  // The first request had 14 tokens. The KV of the first 13 was computed, which fills three blocks of four tokens.
  EXPECT_EQ(h.results[2].num_cached_tokens, 12);
}

TEST(SchedulerPrefixCacheTest, ResetSucceedsOnlyIfNothingRuns) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10), {.max_tokens = 2}));
  h.Step();
  EXPECT_FALSE(h.scheduler.ResetPrefixCache());
  h.RunToEnd();
  EXPECT_TRUE(h.scheduler.ResetPrefixCache());
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Step();
  EXPECT_EQ(h.results[2].num_cached_tokens, 0);
}

TEST(SchedulerPrefixCacheTest, StatsCountAdmittedRequestsOnly) {
  SchedulerHarness h({.num_blocks = 5, .block_size = 4});
  h.Add(MakeRequest(1, Iota(0, 10), {.max_tokens = 3}));
  h.Add(MakeRequest(2, Iota(50, 14), {.max_tokens = 2}));
  h.Step();
  h.Step();
  EXPECT_EQ(h.outputs.stats.prefix_cache.requests, 1);
  EXPECT_EQ(h.outputs.stats.prefix_cache.queries, 10);
  h.RunToEnd();
  EXPECT_EQ(h.outputs.stats.prefix_cache.requests, 2);
  EXPECT_EQ(h.outputs.stats.prefix_cache.queries, 24);
}

TEST(SchedulerPrefixCacheTest, WithoutCachingEverythingIsComputed) {
  SchedulerHarness h({.num_blocks = 100, .block_size = 4, .enable_prefix_caching = false});
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Step();
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 10);
}

TEST(SchedulerPrefixCacheTest, FailedRequestEndsWithItsErrorAndLeavesNoBlocksInTheCache) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Schedule();
  h.edit_output = [](ModelRunnerOutput& output) {
    output.sampled_token_ids.clear();
    output.sampled_offsets = {0, 0};
    output.failed.push_back({1, "logits contain NaN (step 1)"});
  };
  h.Update();
  h.edit_output = nullptr;
  EXPECT_EQ(h.results[1].reason, FinishReason::kError);
  EXPECT_EQ(h.results[1].error, "logits contain NaN (step 1)");
  EXPECT_TRUE(h.results[1].token_ids.empty());
  EXPECT_FALSE(h.scheduler.HasUnfinishedRequests());
  EXPECT_TRUE(h.scheduler.HasFinishedRequests());
  EXPECT_EQ(h.scheduler.kv_cache().pool().num_cached_blocks(), 0);
  h.Add(MakeRequest(2, Iota(0, 10)));
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 10);
}

TEST(SchedulerPrefixCacheTest, FailureDoesNotAffectOtherRequestsOrTheirBlocks) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Step();
  h.Add(MakeRequest(2, Iota(0, 18)));
  h.Schedule();
  h.edit_output = [](ModelRunnerOutput& output) {
    output.sampled_token_ids.pop_back();
    output.sampled_offsets[2] = output.sampled_offsets[1];
    output.failed.push_back({2, "nan"});
  };
  h.Update();
  h.edit_output = nullptr;
  EXPECT_EQ(h.results[2].reason, FinishReason::kError);
  EXPECT_EQ(h.results[1].token_ids.size(), 2u);
  // The two blocks that request 1 published are still cached. Those of request 2 are not.
  h.Add(MakeRequest(3, Iota(0, 18)));
  h.Step();
  EXPECT_EQ(h.results[3].num_cached_tokens, 8);
  EXPECT_EQ(h.scheduler.CheckIntegrity(), "");
}

TEST(SchedulerPrefixCacheTest, FailureOfAnAbortedRequestIsIgnored) {
  SchedulerHarness h(kSmall);
  h.Add(MakeRequest(1, Iota(0, 10)));
  h.Schedule();
  h.Abort(1);
  h.edit_output = [](ModelRunnerOutput& output) { output.failed.push_back({1, "nan"}); };
  h.Update();
  EXPECT_TRUE(h.outputs.empty());
}

}  // namespace
}  // namespace vllm
