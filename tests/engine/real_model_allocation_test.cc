// Checks that a decode step of a real model and executor allocates no heap memory once all buffers have grown.
#include <gtest/gtest.h>

#include <string>

#include "engine/core/engine_core.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

TEST(RealModelAllocationTest, DecodeStepDoesNotAllocate) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model");
  config.model.dtype = kernels::DType::kBFloat16;
  config.parallel.threads_per_rank = 1;
  config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
  config.Finalize();
  EngineCore core(config, MakeExecutor);
  for (RequestId id = 1; id <= 24; ++id) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = id;
    for (int32_t i = 0; i < 20; ++i) request->prompt_token_ids.push_back(300 + static_cast<int32_t>(id) * 7 + i);
    request->sampling_params.max_tokens = 300;
    request->sampling_params.ignore_eos = true;
    request->sampling_params.temperature = id % 2 == 0 ? 0.0 : 0.8;
    request->sampling_params.seed = id;
    if (id % 3 == 0) request->sampling_params.top_p = 0.9;
    if (id % 5 == 0) request->sampling_params.repetition_penalty = 1.1;
    core.AddRequest(request);
  }
  EngineCoreOutputs outputs;
  for (int step = 0; step < 60; ++step) core.Step(outputs);
  const uint64_t before = testing_support::NumAllocations();
  // In 200 steps, every request gets new blocks several times.
  for (int step = 0; step < 200; ++step) core.Step(outputs);
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
  EXPECT_TRUE(core.HasUnfinishedRequests());
}

}  // namespace
}  // namespace vllm
