// Tests a rank that throws at load, in the profiling run or at a random step. Every request must end with the cause,
// the engine must shut down, and no thread may be left. Also tests a model whose logits contain NaN, which must fail
// only the requests in the affected rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/faulty_model.h"
#include "tests/support/thread_count.h"

namespace vllm {
namespace {

using testing_support::FaultPlan;
using testing_support::kFaultCause;
using testing_support::NumThreads;
using testing_support::NumThreadsOnceSettled;
using testing_support::SetFaultPlan;

VllmConfig FaultyConfig(int64_t ranks, int64_t threads) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/llama/plain");
  config.model.architecture = "FaultyForCausalLM";
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = threads;
  config.cache.kv_cache_memory_bytes = 4 << 20;
  config.Finalize();
  return config;
}

SamplingParams Greedy(int64_t max_tokens) {
  SamplingParams params;
  params.temperature = 0.0;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  return params;
}

class EngineDeathTest : public testing::Test {
 protected:
  void SetUp() override { threads_before_ = NumThreads(); }
  void TearDown() override {
    SetFaultPlan({});
    EXPECT_LE(NumThreadsOnceSettled(threads_before_), threads_before_);
  }
  int64_t threads_before_ = 0;
};

TEST_F(EngineDeathTest, FailureAtLoadOrInProfilingReachesTheCaller) {
  for (int round = 0; round < 20; ++round) {
    const int64_t ranks = 1 + round % 2;
    const auto when = round % 4 < 2 ? FaultPlan::When::kLoad : FaultPlan::When::kForward;
    SetFaultPlan({when, static_cast<int>(ranks - 1), 0, 0});
    try {
      MakeThreadClient(FaultyConfig(ranks, 1), MakeExecutor);
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string(e.what()).find(kFaultCause), std::string::npos) << e.what();
    }
    EXPECT_LE(NumThreadsOnceSettled(threads_before_), threads_before_);
  }
}

TEST_F(EngineDeathTest, FailureAtARandomStepEndsEveryRequestWithItsCause) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    const int64_t ranks = 1 + round % 2;
    const int failing_rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int64_t call = 1 + static_cast<int64_t>(random() % 30);
    SetFaultPlan({FaultPlan::When::kForward, failing_rank, call, 0});
    const VllmConfig config = FaultyConfig(ranks, 1 + round % 3 / 2);
    LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
    size_t num_failed = 0;
    try {
      for (int i = 0; i < 6; ++i) engine.AddRequest(std::to_string(i), std::vector<int32_t>{5, 6, 7}, Greedy(40));
      while (engine.HasUnfinishedRequests()) {
        for (const RequestOutput& output : engine.Step()) {
          if (!output.finished) continue;
          ++num_failed;
          EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kError);
          EXPECT_NE(output.error.find(kFaultCause), std::string::npos) << output.error;
        }
      }
      EXPECT_EQ(num_failed, 6u);
    } catch (const EngineDeadError& e) {
      // The engine died while requests were still being added.
      EXPECT_NE(std::string(e.what()).find(kFaultCause), std::string::npos) << e.what();
    }
  }
}

TEST_F(EngineDeathTest, NaNLogitsFailOnlyTheRequestsInTheirRow) {
  // The client is in-process, so that all three requests are present from the first step.
  for (const int64_t ranks : {1, 2}) {
    const VllmConfig config = FaultyConfig(ranks, 1);
    SetFaultPlan({});
    std::vector<std::vector<int32_t>> healthy;
    {
      LLMEngine engine(config, nullptr, MakeInprocClient(config, MakeExecutor));
      for (int i = 0; i < 3; ++i) engine.AddRequest(std::to_string(i), std::vector<int32_t>{5, 6, 7 + i}, Greedy(20));
      healthy.resize(3);
      while (engine.HasUnfinishedRequests()) {
        for (const RequestOutput& output : engine.Step()) {
          if (output.finished) healthy[std::stoul(output.request_id)] = output.outputs[0].token_ids;
        }
      }
    }
    // From the sixth step on, row 1 of the logits contains a NaN. The request in row 1 fails, then the request that
    // moves into row 1.
    SetFaultPlan({FaultPlan::When::kLogits, 0, 6, 1});
    LLMEngine engine(config, nullptr, MakeInprocClient(config, MakeExecutor));
    for (int i = 0; i < 3; ++i) engine.AddRequest(std::to_string(i), std::vector<int32_t>{5, 6, 7 + i}, Greedy(20));
    std::vector<FinishReason> reasons(3);
    while (engine.HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine.Step()) {
        if (!output.finished) continue;
        const size_t index = std::stoul(output.request_id);
        reasons[index] = output.outputs[0].finish_reason;
        const std::vector<int32_t>& ids = output.outputs[0].token_ids;
        ASSERT_LE(ids.size(), healthy[index].size());
        for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], healthy[index][i]);
      }
    }
    // The last request is alone in row 0 and succeeds.
    EXPECT_EQ(std::count(reasons.begin(), reasons.end(), FinishReason::kError), 2);
    EXPECT_EQ(std::count(reasons.begin(), reasons.end(), FinishReason::kLength), 1);
  }
}

}  // namespace
}  // namespace vllm
