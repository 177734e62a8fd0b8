// Tests the figures of several engines as one.
#include "engine/data_parallel/merge_engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vllm {
namespace {

std::shared_ptr<EngineSnapshot> SnapshotWith(int64_t num_blocks, std::vector<RequestId> running,
                                             std::vector<RequestId> waiting) {
  auto snapshot = std::make_shared<EngineSnapshot>();
  snapshot->num_kv_blocks = num_blocks;
  snapshot->block_size = 16;
  snapshot->kv_blocks.assign(static_cast<size_t>(num_blocks), EngineSnapshot::kFree);
  for (const auto& [ids, status] : {std::pair(running, RequestStatus::kRunning), {waiting, RequestStatus::kWaiting}}) {
    for (const RequestId id : ids) {
      snapshot->requests.emplace_back().request_id = id;
      snapshot->requests.back().status = status;
    }
  }
  return snapshot;
}

std::vector<RequestId> IdsOf(const EngineSnapshot& snapshot) {
  std::vector<RequestId> ids;
  for (const RequestSnapshot& request : snapshot.requests) ids.push_back(request.request_id);
  return ids;
}

TEST(MergeEnginesTest, StatsAreSumsAndTheUsageIsThatOfAllBlocks) {
  SchedulerStats a;
  a.num_running_reqs = 2;
  a.num_generation_tokens = 10;
  a.prefix_cache = {1, 20, 5};
  a.kv_cache_usage = 0.5;
  a.admission_paused = true;
  SchedulerStats b;
  b.num_running_reqs = 3;
  b.num_generation_tokens = 7;
  b.prefix_cache = {1, 10, 10};
  b.kv_cache_usage = 0.25;
  b.admission_paused = true;
  const SchedulerStats stats[] = {a, b};
  const int64_t num_blocks[] = {100, 300};
  SchedulerStats sum = SumStats(stats, num_blocks);
  EXPECT_EQ(sum.num_running_reqs, 5);
  EXPECT_EQ(sum.num_generation_tokens, 17);
  EXPECT_DOUBLE_EQ(sum.prefix_cache.HitRate(), 0.5);
  EXPECT_DOUBLE_EQ(sum.kv_cache_usage, 125.0 / 400);
  EXPECT_TRUE(sum.admission_paused);
  const SchedulerStats one_runs[] = {a, SchedulerStats()};
  EXPECT_FALSE(SumStats(one_runs, num_blocks).admission_paused);
}

TEST(MergeEnginesTest, RunningRequestsOfAllEnginesComeFirst) {
  const std::vector<std::shared_ptr<const EngineSnapshot>> snapshots = {SnapshotWith(4, {1, 2}, {3}),
                                                                        SnapshotWith(4, {4}, {5, 6})};
  EXPECT_EQ(IdsOf(MergeSnapshots(snapshots)), (std::vector<RequestId>{1, 2, 4, 3, 5, 6}));
}

TEST(MergeEnginesTest, BlocksBelongToTheSameRequestsAsBefore) {
  const auto a = SnapshotWith(3, {1}, {2});
  a->kv_blocks = {EngineSnapshot::kFirstRequest + 1, EngineSnapshot::kShared, EngineSnapshot::kFirstRequest};
  const auto b = SnapshotWith(2, {3}, {});
  b->kv_blocks = {EngineSnapshot::kCachedFree, EngineSnapshot::kFirstRequest};
  const EngineSnapshot merged = MergeSnapshots(std::vector<std::shared_ptr<const EngineSnapshot>>{a, b});
  ASSERT_EQ(IdsOf(merged), (std::vector<RequestId>{1, 3, 2}));
  EXPECT_EQ(merged.num_kv_blocks, 5);
  EXPECT_EQ(merged.blocks_per_cell, 1);
  EXPECT_EQ(merged.kv_blocks, (std::vector<uint16_t>{EngineSnapshot::kFirstRequest + 2, EngineSnapshot::kShared,
                                                     EngineSnapshot::kFirstRequest, EngineSnapshot::kCachedFree,
                                                     EngineSnapshot::kFirstRequest + 1}));
}

TEST(MergeEnginesTest, RequestsBeyondTheLimitAreOmittedAndTheirBlocksAreUsed) {
  std::vector<RequestId> many(EngineSnapshot::kMaxRequests);
  const auto a = SnapshotWith(1, many, {});
  a->kv_blocks = {EngineSnapshot::kFirstRequest};
  const auto b = SnapshotWith(1, {7}, {});
  b->kv_blocks = {EngineSnapshot::kFirstRequest};
  const EngineSnapshot merged = MergeSnapshots(std::vector<std::shared_ptr<const EngineSnapshot>>{a, b});
  EXPECT_EQ(merged.requests.size(), EngineSnapshot::kMaxRequests);
  EXPECT_EQ(merged.kv_blocks, (std::vector<uint16_t>{EngineSnapshot::kFirstRequest, EngineSnapshot::kUsed}));
}

TEST(MergeEnginesTest, NumberOfCellsIsLimited) {
  const auto max = static_cast<int64_t>(EngineSnapshot::kMaxCells);
  const auto a = SnapshotWith(max, {}, {});
  a->kv_blocks[0] = EngineSnapshot::kShared;
  // Each of these cells stands for three blocks.
  const auto b = SnapshotWith(max, {}, {});
  b->num_kv_blocks = 3 * max - 1;
  b->blocks_per_cell = 3;
  b->kv_blocks.back() = EngineSnapshot::kCachedFree;
  const EngineSnapshot merged = MergeSnapshots(std::vector<std::shared_ptr<const EngineSnapshot>>{a, b});
  EXPECT_EQ(merged.num_kv_blocks, 4 * max - 1);
  EXPECT_LE(merged.kv_blocks.size(), EngineSnapshot::kMaxCells);
  EXPECT_GE(static_cast<int64_t>(merged.kv_blocks.size()) * merged.blocks_per_cell, merged.num_kv_blocks);
  EXPECT_EQ(merged.kv_blocks.front(), EngineSnapshot::kShared);
  EXPECT_EQ(merged.kv_blocks.back(), EngineSnapshot::kCachedFree);
  EXPECT_EQ(std::count(merged.kv_blocks.begin(), merged.kv_blocks.end(), EngineSnapshot::kFree),
            static_cast<int64_t>(merged.kv_blocks.size()) - 2);
}

TEST(MergeEnginesTest, TimesPerStepAreMeansOverAllSteps) {
  const auto a = SnapshotWith(1, {}, {});
  a->num_executed_steps = 10;
  a->step_time = Seconds(1);
  a->rank_times = {Seconds(1), Seconds(0.5)};
  const auto b = SnapshotWith(1, {}, {});
  b->num_executed_steps = 30;
  b->step_time = Seconds(3);
  b->rank_times = {Seconds(3), Seconds(1.5)};
  const EngineSnapshot merged = MergeSnapshots(std::vector<std::shared_ptr<const EngineSnapshot>>{a, b});
  EXPECT_EQ(merged.num_executed_steps, 40);
  EXPECT_EQ(merged.step_time, Seconds(4));
  EXPECT_EQ(merged.rank_times, (std::vector<Seconds>{Seconds(4), Seconds(2)}));
}

}  // namespace
}  // namespace vllm
