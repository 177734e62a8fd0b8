// Tests that a request of every decoder family computes the same bits alone and in a batch, with its prompt whole or in
// chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/many_requests.h"

namespace vllm {
namespace {

using testing_support::ManyRequests;

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/models")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ModelBatchTest : public testing::TestWithParam<std::string> {
 protected:
  VllmConfig Config(int64_t ranks, int64_t threads, kernels::DType dtype) const {
    VllmConfig config;
    config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/" + GetParam());
    config.model.dtype = dtype;
    config.model.max_model_len = 128;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = threads;
    config.Finalize();
    return config;
  }
  static std::vector<std::vector<int32_t>> Prompts() {
    std::vector<std::vector<int32_t>> prompts;
    uint32_t random = 1;
    for (const size_t length : {1, 7, 16, 17, 30, 48, 3}) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (size_t i = 0; i < length; ++i) {
        random = random * 1664525u + 1013904223u;
        prompt.push_back(static_cast<int32_t>(random >> 16) % 61 + 3);
      }
    }
    return prompts;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, ModelBatchTest, testing::ValuesIn(Cases()),
                         [](const auto& case_name) { return case_name.param; });

constexpr int64_t kNumOutputs = 12;

TEST_P(ModelBatchTest, RequestsComputeTheSameBitsInABatchAsAlone) {
  for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16}) {
    ManyRequests engine(Config(1, 1, dtype));
    const std::vector<std::vector<int32_t>> prompts = Prompts();
    const auto together = engine.Run(prompts, kNumOutputs, 2048);
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(engine.Run({prompts[i]}, kNumOutputs, 2048)[0], together[i]) << "request " << i;
    }
  }
}

TEST_P(ModelBatchTest, ChunkedPromptsComputeTheSameBitsAsWholePrompts) {
  ManyRequests engine(Config(1, 1, kernels::DType::kFloat32));
  const auto whole = engine.Run(Prompts(), kNumOutputs, 2048);
  for (const int64_t chunk : {1, 5, 16}) EXPECT_EQ(engine.Run(Prompts(), kNumOutputs, chunk), whole) << chunk;
}

TEST_P(ModelBatchTest, TwoRanksComputeTheSameBitsInAChunkedBatchAsAlone) {
  ManyRequests engine(Config(2, 2, kernels::DType::kFloat32));
  const std::vector<std::vector<int32_t>> prompts = Prompts();
  const auto together = engine.Run(prompts, kNumOutputs, 7);
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(engine.Run({prompts[i]}, kNumOutputs, 2048)[0], together[i]) << "request " << i;
  }
}

}  // namespace
}  // namespace vllm
