// Tests the limit of the LoRA adapters that running requests use.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

std::vector<RequestId> Running(const SchedulerHarness& harness) {
  std::vector<RequestId> ids;
  for (const Request* request : harness.scheduler.running()) ids.push_back(request->id());
  return ids;
}

TEST(SchedulerLoRATest, RequestsOfMoreAdaptersThanTheLimitAreSkipped) {
  SchedulerHarness harness({.max_loras = 2});
  for (const auto& [id, slot] : std::map<RequestId, int32_t>{{1, 0}, {2, 1}, {3, 2}, {4, 0}, {5, -1}, {6, 3}}) {
    harness.Add(id, 4, {.lora_slot = slot});
  }
  harness.Step();
  EXPECT_EQ(Running(harness), (std::vector<RequestId>{1, 2, 4, 5}));
  EXPECT_EQ(harness.scheduler.CheckIntegrity(), "");
}

TEST(SchedulerLoRATest, SkippedRequestsKeepTheirOrder) {
  SchedulerHarness harness({.max_loras = 1});
  harness.Add(1, 4, {.max_tokens = 2, .lora_slot = 0});
  harness.Add(2, 4, {.max_tokens = 2, .lora_slot = 1});
  harness.Add(3, 4, {.max_tokens = 2, .lora_slot = 2});
  harness.Add(4, 4, {.max_tokens = 2, .lora_slot = 1});
  harness.Step();
  std::vector<const Request*> waiting;
  harness.scheduler.AppendWaiting(10, waiting);
  std::vector<RequestId> ids;
  for (const Request* request : waiting) ids.push_back(request->id());
  EXPECT_EQ(ids, (std::vector<RequestId>{2, 3, 4}));
  harness.Step();
  harness.Step();
  EXPECT_EQ(Running(harness), (std::vector<RequestId>{2, 4}));
}

TEST(SchedulerLoRATest, AStreamOfRequestsCannotStarveASkippedOne) {
  SchedulerHarness harness({.max_num_seqs = 2, .max_loras = 1});
  // The requests of adapter 0 never end in the same step, so one of them always runs.
  harness.Add(1, 4, {.max_tokens = 5, .lora_slot = 0});
  harness.Add(2, 4, {.max_tokens = 3, .lora_slot = 1});
  RequestId next = 3;
  for (int64_t num_steps = 0; harness.results[2].reason == FinishReason::kNone; ++num_steps) {
    ASSERT_LT(num_steps, 100);
    while (harness.scheduler.num_waiting() < 3) harness.Add(next++, 4, {.max_tokens = 4, .lora_slot = 0});
    harness.Step();
    ASSERT_EQ(harness.scheduler.CheckIntegrity(), "");
  }
  EXPECT_GE(next, 3 + RequestId{2 * Scheduler::kMaxOvertakenPerSeq});
  harness.RunToEnd();
}

TEST(SchedulerLoRATest, FiftyAdaptersAllMakeProgressWithFourAtATime) {
  SchedulerHarness harness({.max_num_seqs = 8, .max_loras = 4});
  for (RequestId id = 1; id <= 200; ++id) {
    harness.Add(id, 5,
                {.max_tokens = 3 + static_cast<int64_t>(id % 7), .lora_slot = static_cast<int32_t>(id * 7 % 50)});
  }
  while (harness.scheduler.HasUnfinishedRequests()) {
    harness.Step();
    ASSERT_EQ(harness.scheduler.CheckIntegrity(), "");
  }
  for (RequestId id = 1; id <= 200; ++id) EXPECT_EQ(harness.results[id].reason, FinishReason::kLength) << id;
}

TEST(SchedulerLoRATest, PreemptedRequestsOfAnotherAdapterWaitForTheirTurn) {
  SchedulerHarness harness({.num_blocks = 8, .max_num_seqs = 4, .max_loras = 2, .scheduler_reserve_full_isl = false});
  for (RequestId id = 1; id <= 12; ++id) {
    harness.Add(id, 30, {.max_tokens = 40, .lora_slot = static_cast<int32_t>(id % 5)});
  }
  while (harness.scheduler.HasUnfinishedRequests()) {
    harness.Step();
    ASSERT_EQ(harness.scheduler.CheckIntegrity(), "");
  }
  for (RequestId id = 1; id <= 12; ++id) EXPECT_EQ(harness.results[id].token_ids.size(), 40u) << id;
}

TEST(SchedulerLoRATest, PriorityDecidesAmongSkippedRequests) {
  SchedulerHarness harness({.max_loras = 1, .policy = SchedulingPolicy::kPriority});
  harness.Add(1, 4, {.max_tokens = 2, .priority = 0, .lora_slot = 0});
  harness.Step();
  harness.Add(2, 4, {.max_tokens = 2, .priority = 5, .lora_slot = 1});
  harness.Add(3, 4, {.max_tokens = 2, .priority = 1, .lora_slot = 2});
  harness.Step();
  harness.Step();
  EXPECT_EQ(Running(harness), (std::vector<RequestId>{3}));
}

TEST(SchedulerLoRATest, AnInteractiveRequestPreemptsOthersIfItsAdapterDoesNotFit) {
  SchedulerHarness harness({.max_loras = 1});
  harness.Add(1, 4, {.lora_slot = 0});
  harness.Step();
  harness.Add(2, 4, {.interactive = true, .lora_slot = 1});
  harness.Step();
  EXPECT_EQ(Running(harness), (std::vector<RequestId>{2}));
  EXPECT_EQ(harness.scheduler.CheckIntegrity(), "");
  harness.RunToEnd();
}

TEST(SchedulerLoRATest, OnlyRequestsWithTheSameAdapterShareCachedBlocks) {
  SchedulerHarness harness({.max_loras = 4});
  const std::vector<int32_t> prompt = Iota(1, 64);
  const int32_t slots[] = {0, 1, -1, 0, 1, -1};
  for (RequestId id = 1; id <= 6; ++id) {
    harness.Add(MakeRequest(id, prompt, {.max_tokens = 1, .lora_slot = slots[id - 1]}));
    harness.RunToEnd();
    EXPECT_EQ(harness.results[id].num_cached_tokens, id <= 3 ? 0 : 48) << id;
  }
}

TEST(BlockExtraKeysTest, DifferentAdaptersAndSaltsGiveDifferentKeys) {
  const auto keys = [](const std::string& digest, const std::string& salt) {
    EngineCoreRequest request;
    request.lora_digest = digest;
    request.cache_salt = salt;
    return BlockExtraKeys(request);
  };
  const std::string digest(16, 'd');
  const std::set<std::string> all = {keys("", ""),
                                     keys("", "salt"),
                                     keys(digest, ""),
                                     keys(digest, "salt"),
                                     keys("", keys(digest, "salt")),
                                     keys("", keys("", keys(digest, ""))),
                                     keys(std::string(16, 'e'), "salt")};
  EXPECT_EQ(all.size(), 7u);
  EXPECT_EQ(keys("", ""), "");
  EXPECT_EQ(keys("", "salt"), "salt");
}

}  // namespace
}  // namespace vllm
