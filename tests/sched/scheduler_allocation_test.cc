// Decode steps allocate nothing: operator new is counted in this program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/sched/scheduler_harness.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace vllm {
namespace {

TEST(SchedulerAllocationTest, DecodeStepsAllocateNothing) {
  const SchedulerOptions options{.num_blocks = 5000, .max_num_seqs = 256};
  Scheduler scheduler(options.Config(), options.Cache(), options.max_model_len);
  ModelRunnerOutput runner;
  EngineCoreOutputs outputs;
  const auto step = [&] {
    const SchedulerOutput& output = scheduler.Schedule();
    runner.Clear();
    for (const ScheduledTokens& scheduled : output.num_scheduled_tokens) {
      runner.request_ids.push_back(scheduled.request_id);
      runner.sampled_token_ids.push_back(7);
      runner.sampled_offsets.push_back(runner.sampled_token_ids.size());
    }
    outputs.Clear();
    scheduler.UpdateFromOutput(runner, outputs);
  };
  for (RequestId id = 1; id <= 64; ++id) {
    std::string refusal;
    ASSERT_TRUE(
        scheduler.AddRequest(MakeRequest(id, Repeat(static_cast<int32_t>(id), 20), {.max_tokens = 500}), &refusal));
  }
  // The first steps admit everybody; after a block's worth every per-step vector has seen its largest size.
  for (int i = 0; i < 20; ++i) step();
  const int64_t before = num_allocations;
  // Enough for every request to take and publish many blocks.
  for (int i = 0; i < 400; ++i) step();
  EXPECT_EQ(num_allocations - before, 0);
  EXPECT_EQ(scheduler.num_running(), 64);
}

}  // namespace
}  // namespace vllm
