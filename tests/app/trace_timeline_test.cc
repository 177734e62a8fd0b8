// Tests the lines of `vllmcli trace show` on a made-up trace.
#include "app/commands/trace_timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vllm::app {
namespace {

TraceBegin MakeBegin() {
  TraceBegin begin;
  begin.program_version = "1.2";
  begin.scheduler.max_num_batched_tokens = 64;
  begin.scheduler.max_num_seqs = 8;
  begin.cache.num_blocks = 20;
  begin.max_model_len = 256;
  return begin;
}

TraceRecord AddOf(RequestId id, int64_t num_prompt_tokens, bool accepted = true) {
  TraceRecord record;
  record.type = TraceRecordType::kAdd;
  record.add.request_id = id;
  record.add.num_prompt_tokens = num_prompt_tokens;
  record.add.accepted = accepted;
  return record;
}

TraceRecord StepOf(int64_t elapsed_us, std::vector<TraceScheduled> scheduled, std::vector<RequestId> preempted = {}) {
  TraceRecord record;
  record.type = TraceRecordType::kStep;
  record.step.elapsed_us = elapsed_us;
  record.step.num_blocks_in_use = 5;
  record.step.scheduled = std::move(scheduled);
  record.step.preempted_req_ids = std::move(preempted);
  return record;
}

TraceRecord UpdateOf(int64_t elapsed_us, std::vector<TraceSampled> sampled) {
  TraceRecord record;
  record.type = TraceRecordType::kUpdate;
  record.update.elapsed_us = elapsed_us;
  record.update.sampled = std::move(sampled);
  return record;
}

TraceRecord RollBackOf(int64_t elapsed_us) {
  TraceRecord record;
  record.type = TraceRecordType::kRollBack;
  record.rollback_elapsed_us = elapsed_us;
  return record;
}

constexpr auto kRunning = ScheduledKind::kRunning;

TEST(TraceTimelineTest, HeadingNamesTheConfiguration) {
  TraceBegin begin = MakeBegin();
  EXPECT_EQ(TraceTimeline(begin, false).Heading(),
            "vllmcli 1.2, fcfs, at most 64 tokens and 8 sequences per step, 20 blocks of 16 tokens, context 256");
  begin.scheduler.policy = SchedulingPolicy::kPriority;
  begin.scheduler.enable_chunked_prefill = false;
  begin.scheduler.long_prefill_token_threshold = 32;
  begin.cache.enable_prefix_caching = false;
  begin.cache.group_windows = {0, 128};
  EXPECT_EQ(
      TraceTimeline(begin, false).Heading(),
      "vllmcli 1.2, priority, at most 64 tokens and 8 sequences per step, 20 blocks of 16 tokens, context 256, no "
      "chunked prefill, no prefix caching, at most 32 tokens of a prompt per step, KV groups: full window 128");
}

TEST(TraceTimelineTest, LineHasTokensRequestsAndEnds) {
  TraceTimeline timeline(MakeBegin(), false);
  EXPECT_EQ(timeline.Take(AddOf(1, 20)), std::nullopt);
  EXPECT_EQ(timeline.Take(AddOf(2, 30)), std::nullopt);
  EXPECT_EQ(timeline.Take(AddOf(3, 999, false)), std::nullopt);
  EXPECT_EQ(timeline.Take(StepOf(1000, {{1, 20, ScheduledKind::kNew, 0, 2}, {2, 14, ScheduledKind::kNew, 16, 1}})),
            std::nullopt);
  EXPECT_EQ(timeline.Take(UpdateOf(2500, {{1, 1, {}, 0}, {2, 1, {}, 0}})),
            "step 1 at 0.001 s, 2.500 ms: 34/64 tokens (34 prefill, 0 decode), 5/20 blocks; 1:20 new 2:14 new (16 "
            "cached); added 1, 2; rejected 3");
  EXPECT_EQ(timeline.Take(StepOf(3000, {{1, 1, kRunning, 0, 0}, {2, 1, kRunning, 0, 0}})), std::nullopt);
  EXPECT_EQ(timeline.Take(UpdateOf(500, {{1, 1, {}, 0}, {2, 1, SampledEnd::kLength, 0}})),
            "step 2 at 0.004 s, 0.500 ms: 2/64 tokens (0 prefill, 2 decode), 5/20 blocks; 1-2:1; finished 2 (length)");
}

TEST(TraceTimelineTest, RolledBackAdmissionIsNotAPreemption) {
  TraceTimeline timeline(MakeBegin(), false);
  timeline.Take(AddOf(1, 20));
  timeline.Take(StepOf(0, {{1, 20, ScheduledKind::kNew, 0, 2}}));
  EXPECT_EQ(timeline.Take(RollBackOf(100)),
            "step 1 at 0.000 s, 0.100 ms: 20/64 tokens (20 prefill, 0 decode), 5/20 blocks; 1:20 new; added 1; "
            "cancelled and rolled back");
  timeline.Take(StepOf(0, {{1, 20, ScheduledKind::kResumed, 0, 2}}, {1}));
  EXPECT_EQ(timeline.Take(UpdateOf(100, {{1, 1, {}, 0}})),
            "step 2 at 0.000 s, 0.100 ms: 20/64 tokens (20 prefill, 0 decode), 5/20 blocks; 1:20 resumed");
  timeline.Take(StepOf(0, {}, {1}));
  EXPECT_EQ(timeline.Take(UpdateOf(0, {})),
            "step 3 at 0.000 s, 0.000 ms: 0/64 tokens (0 prefill, 0 decode), 5/20 blocks; preempted 1");
}

TEST(TraceTimelineTest, StepWithoutAResultAndLaterEventsAreShownAtTheEnd) {
  TraceTimeline timeline(MakeBegin(), false);
  timeline.Take(AddOf(1, 20));
  timeline.Take(StepOf(0, {{1, 20, ScheduledKind::kNew, 0, 2}}));
  EXPECT_EQ(timeline.Finish(),
            "step 1 at 0.000 s: 20/64 tokens (20 prefill, 0 decode), 5/20 blocks; 1:20 new; added 1; no result");
  EXPECT_EQ(timeline.Finish(), std::nullopt);
  EXPECT_FALSE(timeline.has_end());
}

TEST(TraceTimelineTest, JsonHasTheSameFacts) {
  using Json = nlohmann::json;
  TraceTimeline timeline(MakeBegin(), true);
  EXPECT_EQ(Json::parse(timeline.Heading())["max_num_batched_tokens"], 64);
  timeline.Take(AddOf(1, 20));
  timeline.Take(StepOf(1000, {{1, 4, ScheduledKind::kNew, 16, 2}}));
  const Json json = Json::parse(timeline.Take(UpdateOf(2500, {{1, 0, SampledEnd::kError, 0}})).value());
  EXPECT_EQ(json, Json::parse(R"({
    "step": 1, "time_ms": 1.0, "run_ms": 2.5, "result": "done", "prefill_tokens": 4, "decode_tokens": 0,
    "max_tokens": 64, "blocks_in_use": 5,
    "requests": [{"id": 1, "tokens": 4, "state": "new", "new_blocks": 2, "cached_tokens": 16}],
    "added": [1], "rejected": [], "preempted": [], "finished": [{"id": 1, "reason": "error"}],
    "prefix_cache_emptied": false})"));
}

}  // namespace
}  // namespace vllm::app
