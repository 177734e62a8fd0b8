// Checks that the scheduler allocates no heap memory in decode steps, with and without a trace.
#include <gtest/gtest.h>

#include "engine/trace/trace_recorder.h"
#include "tests/sched/scheduler_harness.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

// Counts the allocations of 400 decode steps. `recorder` may be null.
uint64_t AllocationsOfDecodeSteps(TraceRecorder* recorder) {
  const SchedulerOptions options{.num_blocks = 5000, .max_num_seqs = 256};
  Scheduler scheduler(options.Config(), options.Cache(), options.max_model_len);
  if (recorder != nullptr) recorder->Begin(options.Config(), options.Cache(), options.max_model_len);
  ModelRunnerOutput runner;
  EngineCoreOutputs outputs;
  const auto step = [&] {
    const SchedulerOutput& output = scheduler.Schedule();
    if (recorder != nullptr) recorder->Step(output, 0);
    runner.Clear();
    for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) {
      runner.request_ids.push_back(scheduled.request_id);
      runner.sampled_token_ids.push_back(7);
      runner.sampled_offsets.push_back(runner.sampled_token_ids.size());
    }
    outputs.Clear();
    scheduler.UpdateFromOutput(runner, outputs);
    if (recorder != nullptr) recorder->Update(outputs);
  };
  for (RequestId id = 1; id <= 64; ++id) {
    std::string rejection_reason;
    const EngineCoreRequestPtr request = MakeRequest(id, Repeat(static_cast<int32_t>(id), 20), {.max_tokens = 500});
    EXPECT_TRUE(scheduler.AddRequest(request, &rejection_reason));
    if (recorder != nullptr) recorder->Add(*request, true);
  }
  // The first step admits all requests. After one block of tokens, every per-step vector has reached its largest size.
  for (int i = 0; i < 20; ++i) step();
  const uint64_t before = testing_support::NumAllocations();
  // In 400 steps, every request allocates and publishes many KV blocks.
  for (int i = 0; i < 400; ++i) step();
  const uint64_t num_allocations = testing_support::NumAllocations() - before;
  EXPECT_EQ(scheduler.num_running(), 64);
  return num_allocations;
}

TEST(SchedulerAllocationTest, DecodeStepsAllocateNoHeapMemory) { EXPECT_EQ(AllocationsOfDecodeSteps(nullptr), 0u); }

TEST(SchedulerAllocationTest, RecordedDecodeStepsAllocateNoHeapMemory) {
  const TempDirectory directory;
  TraceRecorder recorder(directory.path() + "/trace");
  EXPECT_EQ(AllocationsOfDecodeSteps(&recorder), 0u);
  EXPECT_FALSE(recorder.Failed());
}

}  // namespace
}  // namespace vllm
