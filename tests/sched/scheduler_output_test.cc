// Tests what the scheduler sends to the workers and to the front end.
#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

using Ids = std::vector<RequestId>;
using Tokens = std::vector<int32_t>;

Tokens ToVector(std::span<const int32_t> span) { return {span.begin(), span.end()}; }

// Returns the logprobs of `count` positions from `first` on, with width 2. The token ids, the rank and the first
// logprob of a position depend on the position.
Logprobs MakeLogprobs(int32_t first, int32_t count) {
  Logprobs logprobs;
  logprobs.width = 2;
  for (int32_t i = first; i < first + count; ++i) {
    logprobs.token_ids.insert(logprobs.token_ids.end(), {i, i + 100});
    logprobs.logprobs.insert(logprobs.logprobs.end(), {-0.5f * static_cast<float>(i), -9.0f});
    logprobs.ranks.push_back(i);
  }
  return logprobs;
}

TEST(SchedulerOutputTest, NewRequestIsSentCompletelyAndOnce) {
  SchedulerHarness h({.block_size = 4});
  const auto request = MakeRequest(1, Iota(0, 6));
  h.Add(request);
  h.Step();
  ASSERT_EQ(h.output->scheduled_new_reqs.size(), 1u);
  EXPECT_EQ(h.output->scheduled_new_reqs[0].request, request);
  EXPECT_EQ(h.output->scheduled_new_reqs[0].block_ids, (Tokens{1, 2}));
  EXPECT_EQ(h.output->scheduled_new_reqs[0].num_computed_tokens, 0);
  EXPECT_EQ(h.output->scheduled_cached_reqs.size(), 0u);
  h.Step();
  EXPECT_TRUE(h.output->scheduled_new_reqs.empty());
}

TEST(SchedulerOutputTest, RunningRequestIsSentWithOnlyItsNewTokenAndNewBlocks) {
  SchedulerHarness h({.block_size = 4});
  h.Add(MakeRequest(1, Iota(0, 7)));
  h.Step();
  h.Step();
  const CachedRequestData& cached = h.output->scheduled_cached_reqs;
  EXPECT_EQ(cached.request_ids, (Ids{1}));
  EXPECT_EQ(cached.resumed_from_preemption[0], 0);
  EXPECT_EQ(cached.num_computed_tokens[0], 7);
  EXPECT_EQ(ToVector(cached.NewTokens(0)), (Tokens{1007}));
  EXPECT_TRUE(cached.NewBlocks(0).empty());
  h.Step();
  EXPECT_EQ(ToVector(cached.NewTokens(0)), (Tokens{1008}));
  EXPECT_EQ(ToVector(cached.NewBlocks(0)), (Tokens{3}));
}

TEST(SchedulerOutputTest, ChunkAddsBlocksButNoTokens) {
  SchedulerHarness h({.block_size = 4, .max_num_batched_tokens = 6});
  h.Add(MakeRequest(1, Iota(0, 12)));
  h.Step();
  EXPECT_EQ(h.output->scheduled_new_reqs[0].block_ids, (Tokens{1, 2}));
  h.Step();
  EXPECT_TRUE(h.output->scheduled_cached_reqs.NewTokens(0).empty());
  EXPECT_EQ(ToVector(h.output->scheduled_cached_reqs.NewBlocks(0)), (Tokens{3}));
}

TEST(SchedulerOutputTest, ClearEmptiesSchedulerOutputAndModelRunnerOutput) {
  SchedulerHarness h;
  h.Add(1, 8);
  h.Add(2, 8, {.max_tokens = 2});
  h.Step();
  h.Step();
  h.Step();
  SchedulerOutput output = *h.output;
  ASSERT_FALSE(output.finished_req_ids.empty());
  output.Clear();
  EXPECT_EQ(output.total_num_scheduled_tokens, 0);
  EXPECT_TRUE(output.num_scheduled_tokens.empty());
  EXPECT_TRUE(output.finished_req_ids.empty());
  EXPECT_EQ(output.scheduled_cached_reqs.size(), 0u);
  EXPECT_EQ(output.scheduled_cached_reqs.new_token_offsets, (std::vector<size_t>{0}));
  EXPECT_EQ(output.scheduled_cached_reqs.new_block_offsets, (std::vector<size_t>{0}));
  h.runner_output.Clear();
  EXPECT_TRUE(h.runner_output.request_ids.empty());
  EXPECT_EQ(h.runner_output.sampled_offsets, (std::vector<size_t>{0}));
}

TEST(SchedulerOutputTest, EachTokenIsReturnedInTheStepThatSampledIt) {
  SchedulerHarness h;
  h.Add(MakeRequest(1, Iota(0, 6), {.max_tokens = 2}));
  h.Step();
  ASSERT_EQ(h.outputs.size(), 1u);
  EXPECT_EQ(h.outputs[0].new_token_ids, (Tokens{1006}));
  EXPECT_EQ(h.outputs[0].finish_reason, FinishReason::kNone);
  h.Step();
  EXPECT_EQ(h.outputs[0].new_token_ids, (Tokens{1007}));
  EXPECT_EQ(h.outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_FALSE(h.scheduler.HasUnfinishedRequests());
  EXPECT_TRUE(h.scheduler.HasFinishedRequests());
}

TEST(SchedulerOutputTest, TimesAreRecordedAtAdmissionAndAtTheFirstAndLastToken) {
  SchedulerHarness h;
  h.Add(1, 6, {.max_tokens = 3});
  const SteadyTime before = std::chrono::steady_clock::now();
  h.Step();
  const EngineCoreOutput first = h.outputs[0];
  EXPECT_GE(first.scheduled_time, before);
  EXPECT_GE(first.first_token_time, first.scheduled_time);
  EXPECT_EQ(first.last_token_time, first.first_token_time);
  h.Step();
  EXPECT_EQ(h.outputs[0].scheduled_time, first.scheduled_time);
  EXPECT_EQ(h.outputs[0].first_token_time, first.first_token_time);
  EXPECT_GE(h.outputs[0].last_token_time, first.last_token_time);
}

TEST(SchedulerOutputTest, StopTokenIdIsReturned) {
  SchedulerHarness h;
  h.Add(MakeRequest(1, Iota(0, 6), {.edit = [](SamplingParams& p) { p.stop_token_ids = {1007}; }}));
  h.RunToEnd();
  EXPECT_EQ(h.results[1].reason, FinishReason::kStop);
  EXPECT_EQ(h.results[1].stop_token_id, 1007);
  EXPECT_EQ(h.results[1].token_ids, (Tokens{1006, 1007}));
}

TEST(SchedulerOutputTest, TokensSampledAfterTheStopTokenAreDropped) {
  SchedulerHarness h;
  h.Add(MakeRequest(1, Iota(0, 6), {.edit = [](SamplingParams& p) { p.stop_token_ids = {8}; }}));
  h.Schedule();
  h.edit_output = [](ModelRunnerOutput& output) {
    output.sampled_token_ids = {7, 8, 9};
    output.sampled_offsets = {0, 3};
    output.logprobs = {MakeLogprobs(1, 3)};
    output.logprobs_index = {0};
  };
  h.Update();
  EXPECT_EQ(h.outputs[0].new_token_ids, (Tokens{7, 8}));
  EXPECT_EQ(h.outputs[0].finish_reason, FinishReason::kStop);
  EXPECT_EQ(h.outputs[0].new_logprobs.ranks, (Tokens{1, 2}));
  EXPECT_EQ(h.outputs[0].new_logprobs.token_ids, (Tokens{1, 101, 2, 102}));
}

TEST(SchedulerOutputTest, LogprobsGoToTheRequestThatLogprobsIndexNames) {
  SchedulerHarness h;
  h.Add(1, 4);
  h.Add(2, 4);
  h.Schedule();
  h.edit_output = [](ModelRunnerOutput& output) {
    output.logprobs = {MakeLogprobs(5, 1)};
    output.logprobs_index = {-1, 0};
  };
  h.Update();
  EXPECT_TRUE(h.outputs[0].new_logprobs.empty());
  EXPECT_EQ(h.outputs[1].new_logprobs.ranks, (Tokens{5}));
}

TEST(SchedulerOutputTest, PromptLogprobsOfAllChunksComeWithTheFirstToken) {
  SchedulerHarness h({.max_num_batched_tokens = 4});
  h.Add(MakeRequest(1, Iota(0, 10), {.edit = [](SamplingParams& p) { p.prompt_logprobs = 1; }}));
  const std::vector<Logprobs> chunks = {MakeLogprobs(1, 4), MakeLogprobs(5, 4), MakeLogprobs(9, 1)};
  for (const Logprobs& chunk : chunks) {
    h.edit_output = [&](ModelRunnerOutput& o) { o.prompt_logprobs.push_back({1, chunk}); };
    h.Step();
  }
  ASSERT_EQ(h.outputs.size(), 1u);
  EXPECT_EQ(h.outputs[0].prompt_logprobs.ranks, (Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  h.edit_output = nullptr;
  h.Step();
  EXPECT_TRUE(h.outputs[0].prompt_logprobs.empty());
}

TEST(SchedulerOutputTest, PromptLogprobsAreNotDuplicatedByPreemption) {
  SchedulerHarness h(
      {.num_blocks = 8, .block_size = 4, .max_num_batched_tokens = 14, .scheduler_reserve_full_isl = false});
  h.Add(1, 12, {.max_tokens = 9});
  h.Add(MakeRequest(2, Iota(50, 26), {.max_tokens = 2, .edit = [](SamplingParams& p) { p.prompt_logprobs = 1; }}));
  // Imitates workers that compute the logprobs of every scheduled prompt position except position 0.
  h.edit_output = [&](ModelRunnerOutput& o) {
    const auto* request = h.scheduler.FindRequest(2);
    const auto end = static_cast<int32_t>(std::min(request->num_computed_tokens, request->num_prompt_tokens()));
    const auto begin = static_cast<int32_t>(request->num_computed_tokens - h.Scheduled(2));
    if (h.Scheduled(2) > 0 && begin < end - 1) {
      o.prompt_logprobs.push_back({2, MakeLogprobs(std::max(begin, 1), end - std::max(begin, 1))});
    }
  };
  Tokens ranks;
  for (int i = 0; i < 100 && h.scheduler.FindRequest(2) != nullptr; ++i) {
    h.Step();
    for (size_t k = 0; k < h.outputs.size(); ++k) {
      const auto& got = h.outputs[k].prompt_logprobs.ranks;
      ranks.insert(ranks.end(), got.begin(), got.end());
    }
  }
  EXPECT_GT(h.results[2].num_preemptions, 0);
  EXPECT_EQ(ranks, Iota(1, 25));
}

TEST(SchedulerOutputTest, EntriesAlreadyInTheOutputsAreKept) {
  SchedulerHarness h;
  h.Add(1, 4);
  h.Schedule();
  ModelRunnerOutput runner;
  runner.request_ids = {1};
  runner.sampled_token_ids = {5};
  runner.sampled_offsets = {0, 1};
  EngineCoreOutputs outputs;
  outputs.Add(99).error.assign("rejected");
  h.scheduler.UpdateFromOutput(runner, outputs);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].error, "rejected");
  EXPECT_EQ(outputs[1].new_token_ids, (Tokens{5}));
}

TEST(EngineCoreOutputsTest, ReusedEntryIsCleared) {
  EngineCoreOutputs outputs;
  EngineCoreOutput& entry = outputs.Add(1);
  entry.new_token_ids = {1, 2};
  entry.error.assign("e");
  entry.stop_token_id = 3;
  entry.finish_reason = FinishReason::kError;
  entry.prompt_logprobs = MakeLogprobs(1, 1);
  outputs.Clear();
  EXPECT_TRUE(outputs.empty());
  const EngineCoreOutput& again = outputs.Add(2);
  EXPECT_EQ(again.request_id, 2u);
  EXPECT_TRUE(again.new_token_ids.empty() && again.error.empty() && again.prompt_logprobs.empty());
  EXPECT_FALSE(again.stop_token_id.has_value());
  EXPECT_EQ(again.finish_reason, FinishReason::kNone);
}

TEST(EngineCoreOutputsTest, MergeAppendsDeltasAndKeepsTheLaterFinishReason) {
  EngineCoreOutputs outputs;
  EngineCoreOutput& first = outputs.Add(1);
  first.new_token_ids = {1, 2};
  first.new_logprobs = MakeLogprobs(1, 2);
  first.prompt_logprobs = MakeLogprobs(7, 1);
  EngineCoreOutput later;
  later.request_id = 1;
  later.new_token_ids = {3};
  later.new_logprobs = MakeLogprobs(3, 1);
  later.finish_reason = FinishReason::kStop;
  later.stop_token_id = 3;
  later.num_preemptions = 2;
  first.Merge(later);
  EXPECT_EQ(first.new_token_ids, (Tokens{1, 2, 3}));
  EXPECT_EQ(first.new_logprobs.ranks, (Tokens{1, 2, 3}));
  EXPECT_EQ(first.prompt_logprobs.ranks, (Tokens{7}));
  EXPECT_EQ(first.finish_reason, FinishReason::kStop);
  EXPECT_EQ(first.stop_token_id, 3);
  EXPECT_EQ(first.num_preemptions, 2);
}

}  // namespace
}  // namespace vllm
