// Tests that a step's buffers are reserved at load, so that neither the first step of the largest size nor a decode
// step allocates memory.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "engine/executor/make_executor.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

constexpr int64_t kMaxTokens = 50;
constexpr int64_t kBlockSize = 16;

struct Case {
  std::string name;
  kernels::DType dtype;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class StepAllocationTest : public ::testing::TestWithParam<Case> {
 protected:
  VllmConfig Config() {
    VllmConfig config;
    const std::string root = VLLMCLI_SOURCE_DIR;
    config.model = LoadModelConfig(root + "/" + GetParam().name);
    config.model.dtype = GetParam().dtype;
    config.model.max_model_len = kMaxTokens + 10;
    config.scheduler.max_num_batched_tokens = kMaxTokens;
    config.cache.block_size = kBlockSize;
    // Use only the test's own thread, whose allocations are counted.
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    return config;
  }

  // Returns a request of `num_tokens` tokens. Its blocks in all groups have consecutive ids from `first_block` on, and
  // then come those of its recurrent state.
  NewRequestData NewRequest(RequestId id, int64_t num_tokens, int32_t first_block, const Executor& executor) {
    const size_t num_groups = executor.KVGroupWindows().size();
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = id;
    request->prompt_token_ids.resize(static_cast<size_t>(num_tokens));
    std::iota(request->prompt_token_ids.begin(), request->prompt_token_ids.end(), 3);
    request->sampling_params.temperature = 0.8;
    request->sampling_params.seed = id;
    request->sampling_params.max_tokens = 5;
    std::vector<int32_t> blocks;
    const auto blocks_per_group = static_cast<int32_t>((num_tokens + 5) / kBlockSize + 1);
    for (size_t group = 0; group < num_groups; ++group) {
      for (int32_t i = 0; i < blocks_per_group; ++i)
        blocks.push_back(first_block + static_cast<int32_t>(group) * blocks_per_group + i);
    }
    std::vector<int32_t> state_blocks(static_cast<size_t>(executor.NumStateBlocks()));
    std::iota(state_blocks.begin(), state_blocks.end(), first_block + static_cast<int32_t>(blocks.size()));
    return {request, blocks, 0, state_blocks};
  }

  // Returns a step with the next `num_tokens` tokens of a known request. `new_token` is the token that the last step
  // sampled for this request, or -1 if there is none.
  static SchedulerOutput Next(RequestId id, int64_t num_computed, int64_t num_tokens, int32_t new_token) {
    SchedulerOutput step;
    CachedRequestData& cached = step.scheduled_cached_reqs;
    cached.request_ids.push_back(id);
    cached.resumed_from_preemption.push_back(0);
    cached.num_computed_tokens.push_back(num_computed);
    if (new_token >= 0) cached.new_token_ids.push_back(new_token);
    cached.new_token_offsets.push_back(cached.new_token_ids.size());
    cached.new_block_offsets.push_back(0);
    cached.spec_token_offsets.push_back(0);
    step.num_scheduled_tokens.push_back({id, num_tokens});
    step.total_num_scheduled_tokens = num_tokens;
    return step;
  }
};

TEST_P(StepAllocationTest, LargestStepAndDecodingDoNotAllocate) {
  const std::unique_ptr<Executor> executor = MakeExecutor(Config()).executor;
  executor->InitializeKVCache(64);
  // The first step computes one token of each request, so that the executor knows both. Sampling from the short one
  // allocates the list of sampled tokens.
  SchedulerOutput first;
  first.scheduled_new_reqs = {NewRequest(1, kMaxTokens + 1, 1, *executor), NewRequest(2, 1, 40, *executor)};
  first.num_scheduled_tokens = {{1, 1}, {2, 1}};
  first.total_num_scheduled_tokens = 2;
  ASSERT_EQ(executor->ExecuteModel(first).sampled_token_ids.size(), 1u);

  const SchedulerOutput largest = Next(1, 1, kMaxTokens, -1);
  uint64_t allocations = testing_support::NumAllocations(), mappings = testing_support::NumMappings();
  const ModelRunnerOutput& output = executor->ExecuteModel(largest);
  EXPECT_EQ(testing_support::NumAllocations() - allocations, 0u);
  EXPECT_EQ(testing_support::NumMappings() - mappings, 0u);
  ASSERT_EQ(output.sampled_token_ids.size(), 1u);

  const SchedulerOutput decode = Next(1, kMaxTokens + 1, 1, output.sampled_token_ids[0]);
  allocations = testing_support::NumAllocations(), mappings = testing_support::NumMappings();
  executor->ExecuteModel(decode);
  EXPECT_EQ(testing_support::NumAllocations() - allocations, 0u);
  EXPECT_EQ(testing_support::NumMappings() - mappings, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepAllocationTest,
    ::testing::Values(Case{"tests/data/llama/plain", kernels::DType::kBFloat16},
                      Case{"tests/data/llama/plain", kernels::DType::kFloat32},
                      Case{"tests/data/models/qwen2_moe", kernels::DType::kBFloat16},
                      Case{"tests/data/models/mixtral", kernels::DType::kFloat32},
                      Case{"tests/data/models/gemma3", kernels::DType::kBFloat16},
                      Case{"tests/data/models/nemotron_h_moe_latent_old", kernels::DType::kBFloat16},
                      Case{"tests/data/models/gemma3n", kernels::DType::kBFloat16},
                      Case{"tests/data/models/gemma4_shared", kernels::DType::kBFloat16},
                      Case{"tests/data/models/gemma4_moe", kernels::DType::kBFloat16},
                      Case{"tests/data/models/opt_350m", kernels::DType::kBFloat16},
                      Case{"tests/data/quant/models/gptq_4bit_desc_act", kernels::DType::kBFloat16},
                      Case{"tests/data/quant/models/gptq_4bit_desc_act", kernels::DType::kFloat32},
                      Case{"tests/data/quant/models/w4a16_actorder", kernels::DType::kBFloat16},
                      Case{"app/guide_model", kernels::DType::kBFloat16}),
    [](const ::testing::TestParamInfo<Case>& test) {
      const std::string& name = test.param.name;
      return name.substr(name.rfind('/') + 1) +
             (test.param.dtype == kernels::DType::kFloat32 ? "_float32" : "_bfloat16");
    });

}  // namespace
}  // namespace vllm
