// Tests preemption, aborts, and requests that outgrow the KV cache.
#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

using Ids = std::vector<RequestId>;

// Returns the options of a pool of 5 blocks, which is too small for two requests that hold 2 blocks each and then both
// need a third.
SchedulerOptions FiveBlocks(bool caching = false) {
  return {.num_blocks = 5, .block_size = 4, .enable_prefix_caching = caching};
}

TEST(SchedulerPreemptionTest, LastRunningRequestIsPreempted) {
  SchedulerHarness h(FiveBlocks());
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{2}));
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.Scheduled(2), 0);
  EXPECT_EQ(h.scheduler.num_waiting(), 1);
  EXPECT_EQ(h.scheduler.MakeStats().num_preemptions, 1);
  EXPECT_EQ(h.scheduler.FindRequest(2)->status, RequestStatus::kPreempted);
  EXPECT_EQ(h.scheduler.FindRequest(2)->num_computed_tokens, 0);
}

TEST(SchedulerPreemptionTest, PreemptedRequestGoesToTheFrontOfWaiting) {
  SchedulerHarness h({.num_blocks = 5, .block_size = 4, .enable_prefix_caching = false, .max_num_seqs = 2});
  h.Add(1, 8, {.max_tokens = 3});
  h.Add(2, 8, {.max_tokens = 3});
  h.Add(3, 1, {.max_tokens = 3});
  h.Step();
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{2}));
  h.Step();
  h.Step();
  ASSERT_EQ(h.output->num_scheduled_tokens.size(), 2u);
  EXPECT_EQ(h.output->num_scheduled_tokens[0].request_id, 2u);
  EXPECT_EQ(h.output->num_scheduled_tokens[1].request_id, 3u);
  h.RunToEnd();
}

TEST(SchedulerPreemptionTest, NoRequestIsAdmittedInAStepWithAPreemption) {
  SchedulerHarness h(FiveBlocks());
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Add(3, 1);
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{2}));
  EXPECT_EQ(h.Scheduled(3), 0);
}

TEST(SchedulerPreemptionTest, ResumedRequestComputesPromptAndOutputAgain) {
  SchedulerHarness h(FiveBlocks());
  h.Add(1, 8, {.max_tokens = 2});
  h.Add(2, 8, {.max_tokens = 4});
  h.Step();
  h.Step();
  ASSERT_EQ(h.results[1].reason, FinishReason::kLength);
  h.Step();
  EXPECT_EQ(h.Scheduled(2), 9);
  const CachedRequestData& cached = h.output->scheduled_cached_reqs;
  ASSERT_EQ(cached.request_ids, (Ids{2}));
  EXPECT_EQ(cached.resumed_from_preemption[0], 1);
  EXPECT_EQ(cached.num_computed_tokens[0], 0);
  EXPECT_EQ(cached.NewBlocks(0).size(), 3u);
  // The token that was sampled in the first step had not been sent to the workers before.
  EXPECT_EQ(cached.NewTokens(0).size(), 1u);
  EXPECT_EQ(h.output->finished_req_ids, (Ids{1}));
  h.RunToEnd();
  EXPECT_EQ(h.results[2].num_preemptions, 1);
  EXPECT_EQ(h.results[2].token_ids, (std::vector<int32_t>{2008, 2009, 2010, 2011}));
}

TEST(SchedulerPreemptionTest, ResumedRequestFindsItsOwnBlocksInThePrefixCache) {
  SchedulerHarness h(FiveBlocks(true));
  h.Add(1, 8, {.max_tokens = 2});
  h.Add(2, 8, {.max_tokens = 4});
  h.Step();
  h.Step();
  h.Step();
  EXPECT_EQ(h.output->scheduled_cached_reqs.num_computed_tokens[0], 8);
  EXPECT_EQ(h.Scheduled(2), 1);
  h.RunToEnd();
  // num_cached_tokens is the hit at the first admission.
  EXPECT_EQ(h.results[2].num_cached_tokens, 0);
}

TEST(SchedulerPreemptionTest, PriorityPreemptsTheLargestPriorityThenTheLatestArrival) {
  SchedulerHarness h(
      {.num_blocks = 7, .block_size = 4, .enable_prefix_caching = false, .policy = SchedulingPolicy::kPriority});
  h.Add(1, 8, {.priority = 1, .arrival_ms = 9});
  h.Add(2, 8, {.priority = 1, .arrival_ms = 3});
  h.Add(3, 8, {.priority = 0, .arrival_ms = 20});
  h.Step();
  EXPECT_EQ(h.scheduler.num_running(), 3);
  h.Step();
  // Request 3 gets the free block. Request 2 preempts request 1, which arrived later, and gets one of its blocks.
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{1}));
  EXPECT_EQ(h.Scheduled(2), 1);
  EXPECT_EQ(h.Scheduled(3), 1);
}

TEST(SchedulerPreemptionTest, VictimThatIsAlreadyScheduledIsRemovedFromTheStep) {
  SchedulerHarness h({.num_blocks = 5,
                      .block_size = 4,
                      .enable_prefix_caching = false,
                      .max_num_batched_tokens = 16,
                      .policy = SchedulingPolicy::kPriority});
  h.Add(1, 8, {.priority = 5});
  h.Step();
  h.Add(2, 8, {.priority = 0});
  h.Step();
  // Request 1 runs before request 2 and holds three of the five blocks. In the next step request 2 needs a third block,
  // so it preempts request 1, which is already scheduled in that step.
  EXPECT_EQ(h.Scheduled(1), 1);
  EXPECT_EQ(h.Scheduled(2), 8);
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{1}));
  EXPECT_EQ(h.Scheduled(1), 0);
  EXPECT_EQ(h.Scheduled(2), 1);
  EXPECT_EQ(h.output->total_num_scheduled_tokens, 1);
  h.RunToEnd();
  EXPECT_EQ(h.results[1].token_ids.size(), 13u);
}

TEST(SchedulerPreemptionTest, BlocksThatAVictimDidNotFillAreNotFoundLater) {
  SchedulerHarness h({.num_blocks = 8,
                      .block_size = 4,
                      .long_prefill_token_threshold = 8,
                      .policy = SchedulingPolicy::kPriority,
                      .scheduler_reserve_full_isl = false});
  h.Add(MakeRequest(1, Iota(0, 28), {.max_tokens = 2, .priority = 5}));
  h.Step();
  h.Add(MakeRequest(2, Iota(100, 8), {.max_tokens = 2, .priority = 0}));
  h.Step();
  EXPECT_EQ(h.Scheduled(1), 8);
  // In this step request 1 gets two more blocks. Then request 2 preempts it to get one of them.
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{1}));
  EXPECT_EQ(h.results[2].reason, FinishReason::kLength);
  h.Step();
  const CachedRequestData& cached = h.output->scheduled_cached_reqs;
  ASSERT_EQ(cached.request_ids, (Ids{1}));
  EXPECT_EQ(cached.num_computed_tokens[0], 16);
  h.RunToEnd();
}

TEST(SchedulerPreemptionTest, RequestRunsInTheStepInWhichTheRequestBeforeItPreemptsItself) {
  SchedulerHarness h(
      {.num_blocks = 4, .block_size = 4, .enable_prefix_caching = false, .policy = SchedulingPolicy::kPriority});
  h.Add(1, 7, {.priority = 5});
  h.Step();
  h.Add(2, 7, {.priority = 0});
  h.Step();
  h.Step();
  // Request 1 cannot grow and preempts itself. Request 2 runs in the same step.
  EXPECT_EQ(h.output->preempted_req_ids, (Ids{1}));
  EXPECT_EQ(h.Scheduled(2), 1);
}

TEST(SchedulerPreemptionTest, RequestThatFillsTheWholeKVCacheFinishesWithReasonLength) {
  SchedulerHarness h({.num_blocks = 3, .block_size = 4});
  h.Add(1, 5, {.max_tokens = 100});
  h.RunToEnd();
  EXPECT_EQ(h.results[1].reason, FinishReason::kLength);
  // Twelve tokens have slots. The thirteenth is sampled from them and needs no slot.
  EXPECT_EQ(h.results[1].token_ids.size(), 8u);
  EXPECT_EQ(h.results[1].num_preemptions, 0);
}

TEST(SchedulerPreemptionTest, RequestsThatTogetherOutgrowTheKVCacheAllFinish) {
  SchedulerHarness h({.num_blocks = 6, .block_size = 4, .enable_prefix_caching = false});
  for (RequestId id = 1; id <= 4; ++id) h.Add(id, 3 + static_cast<int64_t>(id), {.max_tokens = 1000});
  h.RunToEnd();
  for (RequestId id = 1; id <= 4; ++id) {
    EXPECT_EQ(h.results[id].reason, FinishReason::kLength);
    EXPECT_EQ(h.results[id].token_ids.size(), 25 - (3 + id));
  }
}

TEST(SchedulerPreemptionTest, RequestWithMinTokensBeyondTheKVCacheFinishesWithReasonLength) {
  SchedulerHarness h({.num_blocks = 3, .block_size = 4});
  h.Add(1, 5, {.max_tokens = 100, .edit = [](SamplingParams& params) { params.min_tokens = 100; }});
  h.RunToEnd();
  EXPECT_EQ(h.results[1].reason, FinishReason::kLength);
}

TEST(SchedulerPreemptionTest, ResumedRequestAboveTheBudgetIsChunkedEvenWithoutChunkedPrefill) {
  SchedulerHarness h({.num_blocks = 9,
                      .block_size = 4,
                      .enable_prefix_caching = false,
                      .max_num_batched_tokens = 16,
                      .enable_chunked_prefill = false});
  h.Add(1, 8, {.max_tokens = 14});
  h.Add(2, 8, {.max_tokens = 14});
  while (h.scheduler.MakeStats().num_preemptions == 0) h.Step();
  EXPECT_EQ(h.scheduler.FindRequest(2)->num_tokens(), 17);
  while (h.Scheduled(2) == 0) h.Step();
  EXPECT_EQ(h.Scheduled(2), 16);
  h.RunToEnd();
  EXPECT_EQ(h.results[2].token_ids.size(), 14u);
}

TEST(SchedulerPreemptionTest, PreemptionDoesNotChangeTheTokens) {
  std::map<RequestId, std::vector<int32_t>> without_preemption;
  for (const int64_t num_blocks : {1000, 12, 9, 7}) {
    SchedulerHarness h({.num_blocks = num_blocks, .block_size = 4, .max_num_batched_tokens = 30});
    for (RequestId id = 1; id <= 6; ++id) h.Add(id, 4 + static_cast<int64_t>(id), {.max_tokens = 15});
    h.RunToEnd();
    for (RequestId id = 1; id <= 6; ++id) {
      if (num_blocks == 1000) without_preemption[id] = h.results[id].token_ids;
      EXPECT_EQ(h.results[id].token_ids, without_preemption[id]);
    }
  }
}

TEST(SchedulerAbortTest, WaitingRequestIsRemoved) {
  SchedulerHarness h({.max_num_seqs = 1});
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Abort(2);
  EXPECT_EQ(h.scheduler.num_waiting(), 0);
  // Request 2 was never sent to the workers.
  EXPECT_FALSE(h.scheduler.HasFinishedRequests());
  h.RunToEnd();
}

TEST(SchedulerAbortTest, RunningRequestFreesItsBlocksAndIsReportedAsFinishedOnce) {
  SchedulerHarness h;
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Abort(1);
  EXPECT_TRUE(h.scheduler.HasFinishedRequests());
  EXPECT_EQ(h.scheduler.FindRequest(1), nullptr);
  EXPECT_EQ(h.scheduler.CheckIntegrity(), "");
  h.Step();
  EXPECT_EQ(h.output->finished_req_ids, (Ids{1}));
  h.Step();
  EXPECT_TRUE(h.output->finished_req_ids.empty());
}

TEST(SchedulerAbortTest, AbortDuringAStepDropsTheResultOfTheRequest) {
  SchedulerHarness h;
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Schedule();
  h.Abort(1);
  h.Update();
  ASSERT_EQ(h.outputs.size(), 1u);
  EXPECT_EQ(h.outputs[0].request_id, 2u);
  h.Abort(2);
  h.Schedule();
  EXPECT_EQ(h.output->total_num_scheduled_tokens, 0);
  EXPECT_EQ(h.output->finished_req_ids, (Ids{1, 2}));
  EXPECT_EQ(h.scheduler.kv_cache().usage(), 0.0);
}

TEST(SchedulerAbortTest, PreemptedRequestIsReportedAsFinished) {
  SchedulerHarness h(FiveBlocks());
  h.Add(1, 8);
  h.Add(2, 8);
  h.Step();
  h.Step();
  ASSERT_EQ(h.output->preempted_req_ids, (Ids{2}));
  h.Abort(2);
  h.Step();
  EXPECT_EQ(h.output->finished_req_ids, (Ids{2}));
  h.RunToEnd();
}

TEST(SchedulerAbortTest, UnknownAndRepeatedIdsAreIgnored) {
  SchedulerHarness h;
  h.Add(1, 8);
  h.Step();
  h.Abort(77);
  h.Abort(1);
  h.Abort(1);
  h.Schedule();
  EXPECT_EQ(h.output->finished_req_ids, (Ids{1}));
}

TEST(SchedulerAbortTest, AllRequestsCanBeAbortedAtOnce) {
  SchedulerHarness h({.max_num_seqs = 3});
  std::vector<RequestId> ids;
  for (RequestId id = 1; id <= 9; ++id) h.Add(ids.emplace_back(id), 8);
  h.Step();
  h.scheduler.FinishRequests(ids, FinishReason::kAbort);
  EXPECT_FALSE(h.scheduler.HasUnfinishedRequests());
  EXPECT_EQ(h.scheduler.CheckIntegrity(), "");
  EXPECT_TRUE(h.scheduler.ResetPrefixCache());
}

}  // namespace
}  // namespace vllm
