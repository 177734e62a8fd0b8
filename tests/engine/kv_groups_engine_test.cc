// Tests EngineCore with several KV-cache groups. The fake executor throws if the KV of a token is wrong. The allocation
// test uses the real executor.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/config/errors.h"
#include "engine/core/engine_core.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;

std::map<RequestId, std::vector<int32_t>> RunAll(EngineCore& engine_core) {
  std::map<RequestId, std::vector<int32_t>> answers;
  EngineCoreOutputs outputs;
  for (int step = 0; engine_core.HasRequests() && step < 100000; ++step) {
    engine_core.Step(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].error, "");
      auto& answer = answers[outputs[i].request_id];
      answer.insert(answer.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
    }
  }
  EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  return answers;
}

TEST(KVGroupsEngineTest, TokensDoNotDependOnThePoolSizeOrTheTokenBudget) {
  int64_t num_preemptions = 0, num_hits = 0;
  for (uint32_t round = 0; round < 40; ++round) {
    std::mt19937 random(round);
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    VllmConfig config = FakeConfig();
    config.scheduler.max_num_batched_tokens = pick(1, 80);
    config.scheduler.scheduler_reserve_full_isl = pick(0, 1) == 1;
    config.cache.enable_prefix_caching = pick(0, 3) > 0;
    FakeModel model;
    model.group_windows.assign(static_cast<size_t>(pick(0, 2)), 0);
    for (int64_t n = pick(1, 3); n > 0; --n) model.group_windows.push_back(pick(2, 90));
    // The smallest pool holds one request of the largest size. The largest pool holds about ten requests of average
    // size.
    const auto num_groups = static_cast<int64_t>(model.group_windows.size());
    config.cache.num_blocks_override = num_groups * pick(13, 60);
    EngineCore engine_core(config, FakeExecutorFactory(model));
    std::map<RequestId, EngineCoreRequestPtr> requests;
    std::vector<int32_t> shared;
    for (int i = 0; i < 60; ++i) shared.push_back(static_cast<int32_t>(pick(0, 258)));
    for (RequestId id = 1; id <= 25; ++id) {
      std::vector<int32_t> prompt(shared.begin(), shared.begin() + pick(0, 60));
      for (int64_t n = pick(1, 60); n > 0; --n) prompt.push_back(static_cast<int32_t>(pick(0, 258)));
      requests[id] = FakeRequest(id, prompt, pick(1, 60));
      engine_core.AddRequest(requests[id]);
    }
    const auto answers = RunAll(engine_core);
    for (const auto& [id, request] : requests) {
      EXPECT_EQ(answers.at(id), FakeGenerate(*request, *request->sampling_params.max_tokens, 259)) << id;
    }
    num_preemptions += engine_core.GetStats().num_preemptions;
    num_hits += engine_core.GetStats().prefix_cache.hits;
  }
  EXPECT_GT(num_preemptions, 0);
  EXPECT_GT(num_hits, 0);
}

TEST(KVGroupsEngineTest, MaxModelLenIsReducedToWhatFitsInAllGroups) {
  VllmConfig config = FakeConfig();
  config.cache.num_blocks_override = 20;
  FakeModel model;
  model.group_windows = {0, 32};
  // With 64 tokens per step, the window takes up to seven blocks.
  EXPECT_EQ(EngineCore(config, FakeExecutorFactory(model)).ready().max_model_len, 13 * 16);
  model.group_windows = {32};
  EXPECT_EQ(EngineCore(config, FakeExecutorFactory(model)).ready().max_model_len, 256);
}

TEST(KVGroupsEngineTest, FewerBlocksThanGroupsIsAnError) {
  VllmConfig config = FakeConfig();
  config.cache.num_blocks_override = 2;
  FakeModel model;
  model.group_windows = {0, 32, 32};
  EXPECT_THROW(EngineCore(config, FakeExecutorFactory(model)), ConfigError);
  config.cache.num_blocks_override.reset();
  model.memory_bytes = 3 * model.block_bytes;
  EXPECT_THROW(EngineCore(config, FakeExecutorFactory(model)), ResourceError);
  model.memory_bytes = 4 * model.block_bytes;
  EXPECT_EQ(EngineCore(config, FakeExecutorFactory(model)).ready().num_blocks, 3);
}

TEST(KVGroupsEngineTest, BlocksAreLimitedToWhatTheSequencesCanUse) {
  VllmConfig config = FakeConfig();
  config.cache.group_windows = {0, 32};
  // Eight sequences, each with 16 blocks for full attention and 7 for the window (31 + 64 tokens).
  EXPECT_EQ(GetNumBlocks(config, 1 << 30, 100), 8 * (16 + 7));
}

TEST(KVGroupsEngineTest, DecodeStepOfARealModelDoesNotAllocate) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model");
  config.model.layers[0].sliding_window = 40;
  config.model.layers[2].sliding_window = 40;
  config.model.layers[3].sliding_window = 90;
  config.parallel.threads_per_rank = 1;
  config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
  config.Finalize();
  EngineCore core(config, MakeExecutor);
  for (RequestId id = 1; id <= 12; ++id) {
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 20; ++i) prompt.push_back(300 + static_cast<int32_t>(id) * 7 + i);
    SamplingParams params;
    params.ignore_eos = true;
    params.temperature = 0.0;
    core.AddRequest(FakeRequest(id, prompt, 300, params));
  }
  EngineCoreOutputs outputs;
  for (int step = 0; step < 60; ++step) core.Step(outputs);
  const uint64_t before = testing_support::NumAllocations();
  for (int step = 0; step < 200; ++step) core.Step(outputs);
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
  EXPECT_TRUE(core.HasUnfinishedRequests());
}

}  // namespace
}  // namespace vllm
