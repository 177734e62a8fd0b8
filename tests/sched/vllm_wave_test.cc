// Replays two runs recorded from vLLM's own scheduler, step by step. tests/data/sched/vllm_wave.txt describes them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

void RunWave(int64_t num_requests) {
  std::ifstream file(VLLMCLI_TEST_DATA "/sched/vllm_wave.txt");
  ASSERT_TRUE(file);
  SchedulerHarness harness({.enable_prefix_caching = false, .max_num_batched_tokens = 2048, .max_num_seqs = 32});
  for (RequestId id = 1; id <= static_cast<RequestId>(num_requests); ++id) {
    harness.Add(id, 4, {.max_tokens = id <= 2 ? 3 : 60});
  }
  int64_t num_steps = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    int64_t n = 0, step = 0, running = 0, decode_tokens = 0;
    if (line.starts_with('#') || !(fields >> n >> step >> running >> decode_tokens) || n != num_requests) continue;
    std::vector<int64_t> prefill_counts;
    for (int64_t count; fields >> count;) prefill_counts.push_back(count);
    ASSERT_EQ(step, num_steps++);
    if (step == 4) {
      harness.Add(1001, 1024, {.max_tokens = 200});
      harness.Add(1002, 1024, {.max_tokens = 200});
    }

    harness.Schedule();
    int64_t num_decode = 0;
    std::vector<int64_t> prefills;
    for (const NumScheduledTokens& scheduled : harness.output->num_scheduled_tokens) {
      const Request* request = harness.scheduler.FindRequest(scheduled.request_id);
      if (request->num_computed_tokens - scheduled.num_tokens < request->num_prompt_tokens()) {
        prefills.push_back(scheduled.num_tokens);
      } else {
        num_decode += scheduled.num_tokens;
      }
    }
    EXPECT_EQ(prefills, prefill_counts) << "step " << step;
    EXPECT_EQ(num_decode, decode_tokens) << "step " << step;
    EXPECT_EQ(harness.scheduler.num_running(), running) << "step " << step;
    harness.Update();
  }
  EXPECT_EQ(num_steps, 14);
}

TEST(VllmWaveTest, EightRequestsAndTwoLongPromptsAreScheduledAsInVllm) { RunWave(8); }

TEST(VllmWaveTest, ThirtyTwoRequestsAndTwoLongPromptsAreScheduledAsInVllm) { RunWave(32); }

}  // namespace
}  // namespace vllm
