// Checks that the scheduler allocates no heap memory in decode steps.
#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

TEST(SchedulerAllocationTest, DecodeStepsAllocateNoHeapMemory) {
  const SchedulerOptions options{.num_blocks = 5000, .max_num_seqs = 256};
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
  // The first step admits all requests. After one block of tokens, every per-step vector has reached its largest size.
  for (int i = 0; i < 20; ++i) step();
  const uint64_t before = testing_support::NumAllocations();
  // In 400 steps, every request allocates and publishes many KV blocks.
  for (int i = 0; i < 400; ++i) step();
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
  EXPECT_EQ(scheduler.num_running(), 64);
}

}  // namespace
}  // namespace vllm
