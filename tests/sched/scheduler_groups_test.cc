// Tests the scheduler with several KV-cache groups, and with a single sliding window. reference_scheduler_test.cc
// covers other cases with random steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sched/scheduler_harness.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

int64_t NumUsedBlocks(const SchedulerHarness& h, RequestId id, size_t group) {
  const std::vector<int32_t> blocks = h.BlockIds(id, group);
  return static_cast<int64_t>(blocks.size()) - std::count(blocks.begin(), blocks.end(), 0);
}

TEST(SchedulerGroupsTest, WorkersReceiveOneTablePerGroup) {
  SchedulerHarness h({.group_windows = {0, 32}});
  h.Add(1, 20);
  h.Step();
  EXPECT_EQ(h.output->scheduled_new_reqs[0].block_ids, (std::vector<int32_t>{1, 2, 3, 4}));
  for (int i = 0; i < 12; ++i) h.Step();
  EXPECT_TRUE(h.output->scheduled_cached_reqs.NewBlocks(0).empty());
  h.Step();
  const auto blocks = h.output->scheduled_cached_reqs.NewBlocks(0);
  EXPECT_EQ(std::vector<int32_t>(blocks.begin(), blocks.end()), (std::vector<int32_t>{5, 6}));
}

TEST(SchedulerGroupsTest, LongOutputHoldsOnlyTheBlocksOfItsWindow) {
  SchedulerHarness h({.num_blocks = 120, .max_num_batched_tokens = 64, .group_windows = {0, 32}});
  h.Add(1, 200, {.max_tokens = 1000});
  int64_t peak = 0;
  while (h.scheduler.HasUnfinishedRequests()) {
    h.Step();
    peak = std::max(peak, NumUsedBlocks(h, 1, 1));
    if (h.scheduler.FindRequest(1) != nullptr && h.scheduler.FindRequest(1)->num_output_tokens() > 1) {
      EXPECT_LE(NumUsedBlocks(h, 1, 1), 3);
    }
  }
  EXPECT_EQ(h.results[1].token_ids.size(), 1000u);
  EXPECT_EQ(h.results[1].num_preemptions, 0);
  EXPECT_LE(peak, (31 + 64 + 15) / 16 + 1);
}

TEST(SchedulerGroupsTest, WithOnlySlidingWindowsRequestsCanBeLongerThanTheKVCache) {
  // A window of 32 and a chunk of 16 take at most four blocks.
  SchedulerHarness h({.num_blocks = 4, .max_num_batched_tokens = 16, .group_windows = {32}});
  h.Add(1, 2000, {.max_tokens = 2000});
  h.Add(2, 3000, {.max_tokens = 10});
  h.RunToEnd();
  EXPECT_EQ(h.results[1].token_ids.size(), 2000u);
  EXPECT_EQ(h.results[2].token_ids.size(), 10u);
}

TEST(SchedulerGroupsTest, PromptForWhichAllGroupsTogetherNeedTooManyBlocksIsRejected) {
  // With chunks of 64, the window takes at most 7 of the 20 blocks, so full attention gets 13.
  SchedulerHarness h({.num_blocks = 20, .max_num_batched_tokens = 64, .group_windows = {0, 32}});
  std::string rejection_reason;
  EXPECT_FALSE(h.scheduler.AddRequest(MakeRequest(1, Repeat(1, 208)), &rejection_reason));
  EXPECT_EQ(rejection_reason,
            "prompt is 208 tokens, limit 207: the KV cache has 20 blocks of 16 tokens and must also hold one generated "
            "token");
  h.Add(2, 207, {.max_tokens = 100});
  h.RunToEnd();
  // The last generated token needs no slot.
  EXPECT_EQ(h.results[2].token_ids.size(), 2u);
  EXPECT_EQ(h.results[2].reason, FinishReason::kLength);
}

TEST(SchedulerGroupsTest, PreemptedRequestResumesAndFinishes) {
  SchedulerHarness h({.num_blocks = 30,
                      .max_num_batched_tokens = 64,
                      .max_num_seqs = 2,
                      .scheduler_reserve_full_isl = false,
                      .group_windows = {0, 32}});
  h.Add(1, 100, {.max_tokens = 150});
  h.Add(2, 100, {.max_tokens = 150});
  h.RunToEnd();
  EXPECT_EQ(h.results[1].num_preemptions, 0);
  EXPECT_GT(h.results[2].num_preemptions, 0);
  EXPECT_EQ(h.results[1].token_ids.size(), 150u);
  EXPECT_EQ(h.results[2].token_ids.size(), 150u);
}

TEST(SchedulerGroupsTest, DecodeStepsAllocateNoHeapMemory) {
  const SchedulerOptions options{.num_blocks = 12000, .max_num_seqs = 256, .group_windows = {0, 40, 40, 100}};
  Scheduler scheduler(options.Config(), options.Cache(), options.max_model_len);
  ModelRunnerOutput runner;
  EngineCoreOutputs outputs;
  const auto step = [&] {
    const SchedulerOutput& output = scheduler.Schedule();
    runner.Clear();
    for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) {
      runner.request_ids.push_back(scheduled.request_id);
      runner.sampled_token_ids.push_back(7);
      runner.sampled_offsets.push_back(runner.sampled_token_ids.size());
    }
    outputs.Clear();
    scheduler.UpdateFromOutput(runner, outputs);
  };
  for (RequestId id = 1; id <= 64; ++id) {
    std::string rejection_reason;
    ASSERT_TRUE(scheduler.AddRequest(MakeRequest(id, Repeat(static_cast<int32_t>(id), 20), {.max_tokens = 500}),
                                     &rejection_reason));
  }
  for (int i = 0; i < 20; ++i) step();
  const uint64_t before = testing_support::NumAllocations();
  // Windows fill and slide, and blocks that leave them are freed.
  for (int i = 0; i < 400; ++i) step();
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
  EXPECT_EQ(scheduler.num_running(), 64);
  EXPECT_EQ(scheduler.CheckIntegrity(), "");
}

}  // namespace
}  // namespace vllm
