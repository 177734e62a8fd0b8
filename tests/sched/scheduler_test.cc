// Tests which requests a step schedules, and with how many tokens: order, budget, chunks, limits, rejections and
// rollbacks. Also tests the statistics.
#include "engine/sched/scheduler.h"

#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

using Ids = std::vector<RequestId>;

Ids ScheduledIds(const SchedulerOutput& output) {
  Ids ids;
  for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) ids.push_back(scheduled.request_id);
  return ids;
}

TEST(SchedulerTest, IdleSchedulerSchedulesNothing) {
  SchedulerHarness h;
  EXPECT_EQ(h.Schedule().total_num_scheduled_tokens, 0);
  EXPECT_FALSE(h.scheduler.HasUnfinishedRequests());
  EXPECT_FALSE(h.scheduler.HasFinishedRequests());
}

TEST(SchedulerTest, AllPromptsThatFitAreScheduledInOneStep) {
  SchedulerHarness h;
  for (RequestId id = 1; id <= 5; ++id) h.Add(id, 10 * static_cast<int64_t>(id));
  EXPECT_EQ(h.scheduler.num_waiting(), 5);
  h.Schedule();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(h.output->scheduled_new_reqs.size(), 5u);
  EXPECT_EQ(h.Scheduled(3), 30);
  EXPECT_EQ(h.output->total_num_scheduled_tokens, 150);
  EXPECT_EQ(h.scheduler.num_waiting(), 0);
  EXPECT_EQ(h.scheduler.num_running(), 5);
}

TEST(SchedulerTest, ComputedTokensAdvanceWhenScheduled) {
  SchedulerHarness h;
  h.Add(1, 10);
  h.Schedule();
  EXPECT_EQ(h.scheduler.FindRequest(1)->num_computed_tokens, 10);
}

TEST(SchedulerTest, DecodeSchedulesOneToken) {
  SchedulerHarness h;
  h.Add(1, 10);
  h.Step();
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.output->scheduled_cached_reqs.size(), 1u);
  EXPECT_TRUE(h.output->scheduled_new_reqs.empty());
}

TEST(SchedulerTest, LongPromptIsChunkedByTheBudget) {
  SchedulerHarness h({.max_num_batched_tokens = 100});
  h.Add(1, 250);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 100);
  EXPECT_TRUE(h.outputs.empty());
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 100);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 50);
  ASSERT_EQ(h.outputs.size(), 1u);
  EXPECT_EQ(h.outputs[0].new_token_ids.size(), 1u);
}

TEST(SchedulerTest, RemainingBudgetGoesToTheNextPrompt) {
  SchedulerHarness h({.max_num_batched_tokens = 100});
  h.Add(1, 60);
  h.Add(2, 60);
  h.Add(3, 60);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 60);
  EXPECT_EQ(h.Scheduled(2), 40);
  EXPECT_EQ(h.Scheduled(3), 0);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.Scheduled(2), 20);
  EXPECT_EQ(h.Scheduled(3), 60);
}

TEST(SchedulerTest, RunningRequestsComeBeforeWaitingOnes) {
  SchedulerHarness h({.max_num_batched_tokens = 20});
  h.Add(1, 15);
  h.Step();
  h.Add(2, 40);
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2}));
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.Scheduled(2), 19);
}

TEST(SchedulerTest, LongPrefillThresholdCapsEachChunk) {
  SchedulerHarness h({.max_num_batched_tokens = 1000, .long_prefill_token_threshold = 40});
  h.Add(1, 100);
  h.Add(2, 30);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 40);
  EXPECT_EQ(h.Scheduled(2), 30);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 40);
  EXPECT_EQ(h.Scheduled(2), 1);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 20);
}

TEST(SchedulerTest, WithoutChunkedPrefillAPromptWaitsUntilItFitsIntoTheBudget) {
  SchedulerHarness h({.max_num_batched_tokens = 100, .enable_chunked_prefill = false});
  h.Add(1, 60);
  h.Add(2, 60);
  h.Add(3, 10);
  h.Step();
  // Request 3 does not overtake request 2.
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1}));
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2, 3}));
  EXPECT_EQ(h.Scheduled(2), 60);
}

TEST(SchedulerTest, AnEncoderReadsSeveralTextsInShortStepsAndALongTextAlone) {
  constexpr int64_t kLimit = Scheduler::kEncoderStepTokens;
  SchedulerHarness h({.max_num_batched_tokens = 4 * kLimit, .enable_chunked_prefill = false});
  const std::vector<int64_t> lengths{kLimit / 2, kLimit / 2, 1, 3 * kLimit, 5, 6};
  for (size_t i = 0; i < lengths.size(); ++i) h.Add(i + 1, lengths[i], {.pooling = true});
  for (const Ids& ids : {Ids{1, 2}, Ids{3}, Ids{4}, Ids{5, 6}}) {
    h.Step();
    EXPECT_EQ(ScheduledIds(*h.output), ids);
  }
  h.RunToEnd();
}

TEST(SchedulerTest, ADecoderReadsTextsForVectorsInFullSteps) {
  SchedulerHarness h({.max_num_batched_tokens = 2 * Scheduler::kEncoderStepTokens});
  for (RequestId id = 1; id <= 2; ++id) h.Add(id, Scheduler::kEncoderStepTokens, {.pooling = true});
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2}));
  h.RunToEnd();
}

TEST(SchedulerTest, WithoutChunkedPrefillALongPrefillThresholdStillChunks) {
  SchedulerHarness h(
      {.max_num_batched_tokens = 100, .long_prefill_token_threshold = 50, .enable_chunked_prefill = false});
  h.Add(1, 300);
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 50);
  h.RunToEnd();
}

TEST(SchedulerTest, MaxNumSeqsLimitsTheRunningRequests) {
  SchedulerHarness h({.max_num_seqs = 2});
  for (RequestId id = 1; id <= 4; ++id) h.Add(id, 8, {.max_tokens = id == 1 ? 1 : 5});
  h.Step();
  EXPECT_EQ(h.scheduler.num_waiting(), 2);
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{2, 3}));
  h.RunToEnd();
}

TEST(SchedulerTest, RequestWaitsWhileTheBudgetIsExhausted) {
  SchedulerHarness h({.max_num_batched_tokens = 3});
  for (RequestId id = 1; id <= 4; ++id) h.Add(id, 1, {.max_tokens = 3});
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2, 3}));
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1, 2, 3}));
  h.RunToEnd();
  EXPECT_EQ(h.results[4].token_ids.size(), 3u);
}

TEST(SchedulerTest, WholePromptMustFitEvenIfItIsChunked) {
  SchedulerHarness h({.num_blocks = 10, .block_size = 4, .max_num_batched_tokens = 8});
  h.Add(1, 23, {.max_tokens = 1});
  h.Add(2, 20, {.max_tokens = 1});
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 8);
  h.Step();
  h.Step();
  // One token of the budget remains and four blocks are free, but the whole prompt of request 2 needs five blocks.
  EXPECT_EQ(h.Scheduled(1), 7);
  EXPECT_EQ(h.Scheduled(2), 0);
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 8);
}

TEST(SchedulerTest, WithoutReservationOnlyTheChunkMustFit) {
  SchedulerHarness h(
      {.num_blocks = 10, .block_size = 4, .max_num_batched_tokens = 8, .scheduler_reserve_full_isl = false});
  h.Add(1, 23, {.max_tokens = 1});
  h.Add(2, 20, {.max_tokens = 1});
  for (int i = 0; i < 3; ++i) h.Step();
  EXPECT_EQ(h.Scheduled(1), 7);
  EXPECT_EQ(h.Scheduled(2), 1);
  h.RunToEnd();
}

TEST(SchedulerTest, NoRequestOvertakesAWaitingRequestThatDoesNotFit) {
  SchedulerHarness h({.num_blocks = 6, .block_size = 4});
  h.Add(1, 12, {.max_tokens = 3});
  h.Add(2, 16);
  h.Add(3, 1);
  h.Step();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{1}));
  EXPECT_EQ(h.scheduler.num_waiting(), 2);
}

TEST(SchedulerTest, SmallerPriorityValueRunsFirst) {
  SchedulerHarness h({.max_num_seqs = 2, .policy = SchedulingPolicy::kPriority});
  h.Add(1, 8, {.priority = 2});
  h.Add(2, 8, {.priority = 0});
  h.Add(3, 8, {.priority = 1});
  h.Schedule();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{2, 3}));
}

TEST(SchedulerTest, EqualPrioritiesRunInOrderOfArrivalThenId) {
  SchedulerHarness h({.policy = SchedulingPolicy::kPriority});
  h.Add(1, 8, {.arrival_ms = 5});
  h.Add(4, 8, {.arrival_ms = 3});
  h.Add(3, 8, {.arrival_ms = 3});
  h.Schedule();
  EXPECT_EQ(ScheduledIds(*h.output), (Ids{3, 4, 1}));
}

TEST(SchedulerTest, PromptThatFillsMaxModelLenIsRejected) {
  SchedulerHarness h({.max_model_len = 32});
  std::string rejection_reason;
  EXPECT_TRUE(h.scheduler.AddRequest(MakeRequest(1, Repeat(1, 31)), &rejection_reason));
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(2, Repeat(1, 32)), &rejection_reason));
  EXPECT_EQ(rejection_reason,
            "prompt is 32 tokens, limit 31: max_model_len is 32 and must also hold one generated token");
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(3, Repeat(1, 33)), nullptr));
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(4, Repeat(1, 320)), nullptr));
  EXPECT_EQ(h.scheduler.num_waiting(), 1);
  h.RunToEnd();
  EXPECT_EQ(h.results[1].reason, FinishReason::kLength);
}

TEST(SchedulerTest, PromptThatFillsTheKVCacheIsRejected) {
  SchedulerHarness h({.num_blocks = 4, .block_size = 4});
  std::string rejection_reason;
  EXPECT_TRUE(h.scheduler.AddRequest(MakeRequest(1, Repeat(1, 15)), &rejection_reason));
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(2, Repeat(1, 16)), &rejection_reason));
  EXPECT_EQ(rejection_reason,
            "prompt is 16 tokens, limit 15: the KV cache has 4 blocks of 4 tokens and must also hold one generated "
            "token");
  h.RunToEnd();
}

TEST(SchedulerTest, PromptAboveTheBudgetIsRejectedWithoutChunkedPrefill) {
  SchedulerHarness h({.max_num_batched_tokens = 16, .enable_chunked_prefill = false});
  std::string rejection_reason;
  EXPECT_TRUE(h.scheduler.AddRequest(MakeRequest(1, Repeat(1, 16)), &rejection_reason));
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(2, Repeat(1, 17)), &rejection_reason));
  EXPECT_EQ(rejection_reason,
            "prompt is 17 tokens, limit 16: without chunked prefill, max_num_batched_tokens limits the prompt");
  h.RunToEnd();
}

TEST(SchedulerTest, EmptyPromptIsRejected) {
  SchedulerHarness h;
  std::string rejection_reason;
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(1, {}), &rejection_reason));
  EXPECT_EQ(rejection_reason, "prompt has no tokens");
}

TEST(SchedulerTest, StatsDescribeTheLastStep) {
  SchedulerHarness h({.num_blocks = 10, .block_size = 4, .max_num_seqs = 1});
  h.Add(1, 16);
  h.Add(2, 3);
  h.Step();
  const SchedulerStats stats = h.outputs.stats;
  EXPECT_EQ(stats.step, 1);
  EXPECT_EQ(stats.num_running_reqs, 1);
  EXPECT_EQ(stats.num_waiting_reqs, 1);
  EXPECT_DOUBLE_EQ(stats.kv_cache_usage, 0.4);
  EXPECT_EQ(stats.num_scheduled_tokens, 16);
  EXPECT_EQ(stats.prefix_cache.queries, 16);
  EXPECT_EQ(stats.prefix_cache.hits, 0);
}

TEST(SchedulerTest, IdOfAnUnfinishedRequestIsRejected) {
  SchedulerHarness h;
  h.Add(1, 8);
  std::string rejection_reason;
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(1, Iota(0, 3)), &rejection_reason));
  EXPECT_EQ(rejection_reason, "request id 1 is already in use by an unfinished request");
  EXPECT_EQ(h.scheduler.num_waiting(), 1);
  h.RunToEnd();
}

TEST(SchedulerTest, RolledBackStepIsScheduledAgainInTheSameOrder) {
  SchedulerHarness h;
  h.Add(1, 40);
  h.Step();
  h.Add(2, 40);
  h.Add(3, 40);
  h.Schedule();
  h.RollBack();
  EXPECT_EQ(h.scheduler.CheckIntegrity(), "");
  EXPECT_EQ(h.scheduler.num_running(), 1);
  EXPECT_EQ(h.scheduler.num_waiting(), 2);
  h.Schedule();
  ASSERT_EQ(h.output->num_scheduled_tokens.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(h.output->num_scheduled_tokens[i].request_id, i + 1);
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.Scheduled(2), 40);
  h.Update();
  h.RunToEnd();
}

TEST(SchedulerTest, BlocksThatARolledBackStepDidNotFillAreNotFound) {
  SchedulerHarness h;
  // Request 2 shares the blocks that request 1 is to fill in the same step.
  h.Add(MakeRequest(1, Iota(0, 40)));
  h.Add(MakeRequest(2, Iota(0, 40)));
  h.Schedule();
  EXPECT_EQ(h.Scheduled(2), 8);
  h.RollBack();
  h.Abort(1);
  h.Schedule();
  EXPECT_EQ(h.Scheduled(2), 40);
  h.Update();
  h.RunToEnd();
}

}  // namespace
}  // namespace vllm
