// Tests what viewers do to the scheduler: snapshots, paused admission, and aborts with a final output.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/sched/scheduler_snapshot.h"
#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

TEST(SchedulerPauseTest, PausedSchedulerAdmitsNoNewRequest) {
  SchedulerHarness h;
  h.Add(1, 10);
  h.Step();
  h.scheduler.SetAdmissionPaused(true);
  h.Add(2, 10);
  h.Step();
  EXPECT_EQ(h.scheduler.num_running(), 1);
  EXPECT_EQ(h.scheduler.num_waiting(), 1);
  EXPECT_FALSE(h.scheduler.IsHeld());
  EXPECT_TRUE(h.scheduler.MakeStats().admission_paused);
}

TEST(SchedulerPauseTest, RunningRequestsFinishWhileAdmissionIsPaused) {
  SchedulerHarness h;
  h.Add(1, 10, {.max_tokens = 3});
  h.Step();
  h.scheduler.SetAdmissionPaused(true);
  h.Add(2, 10);
  for (int i = 0; i < 3; ++i) h.Step();
  EXPECT_EQ(h.results[1].reason, FinishReason::kLength);
  EXPECT_TRUE(h.scheduler.IsHeld());
  h.scheduler.SetAdmissionPaused(false);
  h.RunToEnd();
  EXPECT_EQ(h.results[2].reason, FinishReason::kLength);
}

TEST(SchedulerPauseTest, PreemptedRequestResumesWhileAdmissionIsPaused) {
  SchedulerHarness h({.num_blocks = 6, .max_model_len = 96});
  h.Add(1, 30, {.max_tokens = 40});
  h.Add(2, 30, {.max_tokens = 40});
  h.Step();
  ASSERT_EQ(h.scheduler.num_running(), 2);
  h.scheduler.SetAdmissionPaused(true);
  h.RunToEnd();
  EXPECT_GT(h.results[2].num_preemptions, 0);
  EXPECT_EQ(h.results[2].token_ids.size(), 40u);
}

TEST(SchedulerPauseTest, PauseDoesNotChangeTheTokens) {
  const auto run = [](bool pauses) {
    SchedulerHarness h({.num_blocks = 12, .max_num_batched_tokens = 32});
    for (RequestId id = 1; id <= 6; ++id) h.Add(id, 20 + static_cast<int64_t>(id), {.max_tokens = 20});
    for (int i = 0; i < 10; ++i) {
      h.scheduler.SetAdmissionPaused(pauses && i % 4 != 0);
      if (!h.scheduler.IsHeld()) h.Step();
    }
    h.scheduler.SetAdmissionPaused(false);
    h.RunToEnd();
    std::map<RequestId, std::vector<int32_t>> token_ids;
    for (const auto& [id, result] : h.results) token_ids[id] = result.token_ids;
    return token_ids;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(SchedulerPauseTest, AbortWithOutputReportsTheRequestOnce) {
  SchedulerHarness h;
  h.Add(1, 10);
  h.Add(2, 10);
  h.Step();
  EngineCoreOutputs outputs;
  h.scheduler.AbortWithOutput(1, outputs);
  h.scheduler.AbortWithOutput(1, outputs);
  h.scheduler.AbortWithOutput(77, outputs);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].request_id, 1u);
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_TRUE(outputs[0].new_token_ids.empty());
  EXPECT_EQ(h.scheduler.num_running(), 1);
  EXPECT_EQ(h.scheduler.CheckIntegrity(), "");
  h.RunToEnd();
  EXPECT_EQ(h.results[2].token_ids.size(), 16u);
}

TEST(SchedulerPauseTest, AbortWithOutputEndsAWaitingRequest) {
  SchedulerHarness h({.max_num_seqs = 1});
  h.Add(1, 10);
  h.Add(2, 10);
  h.Step();
  EngineCoreOutputs outputs;
  h.scheduler.AbortWithOutput(2, outputs);
  EXPECT_EQ(outputs.size(), 1u);
  EXPECT_EQ(h.scheduler.num_waiting(), 0);
  h.RunToEnd();
}

EngineSnapshot SnapshotOf(const SchedulerHarness& h) {
  EngineSnapshot snapshot;
  FillSnapshot(h.scheduler, snapshot);
  return snapshot;
}

TEST(SchedulerSnapshotTest, ListsRunningRequestsAndThenWaitingOnesInOrder) {
  SchedulerHarness h({.max_num_seqs = 2});
  for (RequestId id = 1; id <= 4; ++id) h.Add(id, 10 * static_cast<int64_t>(id));
  h.Step();
  const EngineSnapshot snapshot = SnapshotOf(h);
  ASSERT_EQ(snapshot.requests.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(snapshot.requests[i].request_id, i + 1);
  EXPECT_EQ(snapshot.requests[1].status, RequestStatus::kRunning);
  EXPECT_EQ(snapshot.requests[1].num_computed_tokens, 20);
  EXPECT_EQ(snapshot.requests[1].num_output_tokens, 1);
  EXPECT_EQ(snapshot.requests[1].max_tokens, 16);
  EXPECT_GE(snapshot.requests[1].time_to_first_token, Seconds(0));
  EXPECT_EQ(snapshot.requests[2].status, RequestStatus::kWaiting);
  EXPECT_LT(snapshot.requests[2].time_to_first_token, Seconds(0));
  EXPECT_EQ(snapshot.scheduler.num_running_reqs, 2);
  EXPECT_EQ(snapshot.scheduler.num_waiting_reqs, 2);
}

TEST(SchedulerSnapshotTest, PriorityQueueIsListedInItsOrder) {
  SchedulerHarness h({.max_num_seqs = 1, .policy = SchedulingPolicy::kPriority});
  h.Add(1, 10, {.priority = -5});
  h.Step();
  h.Add(2, 10, {.priority = 3});
  h.Add(3, 10, {.priority = 1});
  h.Add(4, 10, {.priority = 2});
  const EngineSnapshot snapshot = SnapshotOf(h);
  ASSERT_EQ(snapshot.requests.size(), 4u);
  EXPECT_EQ(snapshot.requests[1].request_id, 3u);
  EXPECT_EQ(snapshot.requests[2].request_id, 4u);
  EXPECT_EQ(snapshot.requests[3].request_id, 2u);
}

TEST(SchedulerSnapshotTest, BlockMapShowsTheOwnerOfEachBlock) {
  SchedulerHarness h({.num_blocks = 20});
  h.Add(MakeRequest(1, Iota(1, 33)));
  h.Step();
  // Shares the first two blocks with request 1.
  h.Add(MakeRequest(2, Iota(1, 32 + 10)));
  h.Step();
  const EngineSnapshot snapshot = SnapshotOf(h);
  std::vector<uint16_t> expected(20, EngineSnapshot::kFree);
  for (const int32_t id : h.BlockIds(1)) expected[static_cast<size_t>(id - 1)] = EngineSnapshot::kFirstRequest;
  for (const int32_t id : h.BlockIds(2)) {
    uint16_t& state = expected[static_cast<size_t>(id - 1)];
    state = state == EngineSnapshot::kFree ? EngineSnapshot::kFirstRequest + 1 : EngineSnapshot::kShared;
  }
  EXPECT_EQ(snapshot.kv_blocks, expected);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), EngineSnapshot::kShared), 2);
  EXPECT_EQ(snapshot.blocks_per_cell, 1);
}

TEST(SchedulerSnapshotTest, FinishedRequestLeavesCachedBlocks) {
  SchedulerHarness h({.num_blocks = 20});
  h.Add(MakeRequest(1, Iota(1, 40), {.max_tokens = 1}));
  h.RunToEnd();
  const EngineSnapshot snapshot = SnapshotOf(h);
  EXPECT_EQ(std::count(snapshot.kv_blocks.begin(), snapshot.kv_blocks.end(), EngineSnapshot::kCachedFree), 2);
  EXPECT_EQ(std::count(snapshot.kv_blocks.begin(), snapshot.kv_blocks.end(), EngineSnapshot::kFree), 18);
}

TEST(SchedulerSnapshotTest, LargePoolIsShownInCellsOfSeveralBlocks) {
  SchedulerHarness h({.num_blocks = 3 * static_cast<int64_t>(EngineSnapshot::kMaxCells)});
  h.Add(1, 16 * 10);
  h.Step();
  const EngineSnapshot snapshot = SnapshotOf(h);
  EXPECT_EQ(snapshot.blocks_per_cell, 3);
  EXPECT_EQ(snapshot.kv_blocks.size(), EngineSnapshot::kMaxCells);
  // 11 blocks, because the sampled token needs one too.
  const auto used = std::count(snapshot.kv_blocks.begin(), snapshot.kv_blocks.end(), EngineSnapshot::kFirstRequest);
  EXPECT_GE(used, 4);
  EXPECT_LE(used, 11);
}

TEST(SchedulerSnapshotTest, CountsPromptAndOutputTokens) {
  SchedulerHarness h({.max_num_batched_tokens = 16});
  h.Add(1, 40, {.max_tokens = 5});
  h.RunToEnd();
  const SchedulerStats stats = h.scheduler.MakeStats();
  EXPECT_EQ(stats.num_prompt_tokens, 40);
  EXPECT_EQ(stats.num_generation_tokens, 5);
  EXPECT_EQ(stats.num_computed_tokens, 44);
}

}  // namespace
}  // namespace vllm
