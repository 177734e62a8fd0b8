// Tests interactive requests: they run before others, take their places and blocks, and keep shared steps short.
#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

constexpr RequestId kChat = 100;
RequestSpec Interactive() { return {.max_tokens = 3, .interactive = true}; }

std::vector<std::pair<RequestId, int64_t>> Scheduled(const SchedulerHarness& h) {
  std::vector<std::pair<RequestId, int64_t>> scheduled;
  for (const NumScheduledTokens& entry : h.output->num_scheduled_tokens) {
    scheduled.emplace_back(entry.request_id, entry.num_tokens);
  }
  return scheduled;
}

using Entries = std::vector<std::pair<RequestId, int64_t>>;

TEST(SchedulerInteractiveTest, PromptOfAnInteractiveRequestRunsAlone) {
  SchedulerHarness h({.max_num_batched_tokens = 20});
  h.Add(1, 4);
  h.Add(2, 50);
  h.Step();
  h.Add(3, 4);
  h.Add(kChat, 30, Interactive());
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 20}}));
  EXPECT_TRUE(h.output->has_interactive_request);
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 10}}));
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 1}, {1, 1}, {2, 18}}));
  h.RunToEnd();
  EXPECT_EQ(h.results[1].num_preemptions, 0);
}

TEST(SchedulerInteractiveTest, TokensOfInteractiveRequestsAreCounted) {
  SchedulerHarness h({.max_num_batched_tokens = 16});
  h.Add(1, 40, {.max_tokens = 5});
  h.Add(kChat, 50, Interactive());
  h.RunToEnd();
  EXPECT_EQ(h.scheduler.MakeStats().num_interactive_tokens, 53);
  // The same prompt again: most of it is in the prefix cache. The hits count too.
  h.Add(MakeRequest(kChat + 1, Repeat(static_cast<int32_t>(kChat), 50), Interactive()));
  h.RunToEnd();
  const SchedulerStats stats = h.scheduler.MakeStats();
  EXPECT_GT(stats.prefix_cache.hits, 0);
  EXPECT_EQ(stats.num_interactive_tokens, 106);
  EXPECT_EQ(stats.num_prompt_tokens + stats.prefix_cache.hits + stats.num_generation_tokens, 45 + 106);
}

TEST(SchedulerInteractiveTest, InteractiveRequestsRunTogetherInOrderOfArrival) {
  SchedulerHarness h({.max_num_seqs = 3});
  h.Add(1, 4);
  h.Add(kChat, 5, Interactive());
  h.Add(kChat + 1, 6, Interactive());
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 5}, {kChat + 1, 6}}));
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 1}, {kChat + 1, 1}, {1, 4}}));
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, LastRunningRequestGivesUpItsPlace) {
  SchedulerHarness h({.max_num_seqs = 2});
  h.Add(1, 4);
  h.Add(2, 4);
  h.Step();
  h.Add(kChat, 5, Interactive());
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 5}}));
  EXPECT_EQ(h.output->preempted_req_ids, (std::vector<RequestId>{2}));
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, RequestOfTheLowestPriorityGivesUpItsPlace) {
  SchedulerHarness h({.max_num_seqs = 2, .policy = SchedulingPolicy::kPriority});
  h.Add(1, 4, {.priority = 5});
  h.Add(2, 4, {.priority = 2});
  h.Step();
  h.Add(kChat, 5, {.priority = 9, .interactive = true});
  h.Step();
  EXPECT_EQ(h.output->preempted_req_ids, (std::vector<RequestId>{1}));
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, OthersGiveUpTheirBlocks) {
  SchedulerHarness h({.num_blocks = 6, .block_size = 4, .enable_prefix_caching = false});
  h.Add(1, 7);
  h.Add(2, 7);
  h.Step();
  h.Add(kChat, 15, {.max_tokens = 5, .interactive = true});
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 15}}));
  EXPECT_EQ(h.output->preempted_req_ids, (std::vector<RequestId>{2}));
  // The fifth block of the interactive request is the third one of request 1.
  h.Step();
  h.Step();
  EXPECT_EQ(h.scheduler.running()[0]->id(), kChat);
  h.RunToEnd();
  EXPECT_EQ(h.results[kChat].num_preemptions, 0);
}

TEST(SchedulerInteractiveTest, InteractiveRequestsDoNotPreemptEachOtherToStart) {
  SchedulerHarness h({.max_num_seqs = 1});
  h.Add(kChat, 5, Interactive());
  h.Step();
  h.Add(kChat + 1, 5, Interactive());
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 1}}));
  EXPECT_TRUE(h.output->preempted_req_ids.empty());
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, StepsAreShortOnlyWhileAnInteractiveRequestRuns) {
  SchedulerHarness h({.max_num_batched_tokens = 1000});
  h.Add(kChat, 5, Interactive());
  h.Add(1, 5000);
  h.Step();
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 1}, {1, Scheduler::kSharedStepTokens - 1}}));
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{kChat, 1}}));
  EXPECT_EQ(h.results[kChat].reason, FinishReason::kLength);
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{1, 1000}}));
  EXPECT_FALSE(h.output->has_interactive_request);
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, StepsAloneFollowALargeSharedStep) {
  SchedulerHarness h({.max_num_batched_tokens = 1000});
  h.Add(kChat, 5, {.max_tokens = 20, .interactive = true});
  h.Add(1, 5000);
  h.Step();
  std::vector<size_t> num_requests;
  for (int i = 0; i < 7; ++i) {
    h.Step();
    num_requests.push_back(Scheduled(h).size());
  }
  EXPECT_EQ(num_requests, (std::vector<size_t>{2, 1, 1, 2, 1, 1, 2}));
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, NoStepAloneFollowsASmallSharedStep) {
  SchedulerHarness h;
  h.Add(kChat, 5, {.max_tokens = 20, .interactive = true});
  h.Add(1, 5);
  for (int i = 0; i < 2; ++i) h.Step();
  for (int i = 0; i < 5; ++i) {
    h.Step();
    EXPECT_EQ(Scheduled(h).size(), 2u);
  }
  h.RunToEnd();
}

TEST(SchedulerInteractiveTest, AbortOfTheLastInteractiveRequestEndsShortSteps) {
  SchedulerHarness h({.max_num_batched_tokens = 1000});
  h.Add(kChat, 5, Interactive());
  h.Add(kChat + 1, 5, Interactive());
  h.Add(1, 5000);
  h.Step();
  h.Abort(kChat);
  h.Abort(kChat + 1);
  h.Step();
  EXPECT_EQ(Scheduled(h), (Entries{{1, 1000}}));
  h.RunToEnd();
}

}  // namespace
}  // namespace vllm
