// Tests that the number of tensor-parallel ranks does not change a bit of a result: for every family, every
// quantization scheme, every block type of GGUF files, every data type and every --quantization.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/vllm_config.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/many_requests.h"
#include "tests/support/test_models.h"

namespace vllm {
namespace {

using testing_support::ManyRequests;
using testing_support::TestModels;

class RanksTest : public testing::TestWithParam<std::string> {
 protected:
  static VllmConfig Config(kernels::DType dtype, QuantizationMethod quantization) {
    const std::string path = std::string(VLLMCLI_TEST_DATA) + "/" + GetParam();
    VllmConfig config;
    config.model = path.ends_with(".gguf") ? LoadGgufConfig(path) : LoadModelConfig(path);
    config.model.dtype = dtype;
    if (config.model.quantization.method == QuantizationMethod::kNone) config.model.quantization.method = quantization;
    config.model.max_model_len = 64;
    config.parallel.threads_per_rank = 1;
    return config;
  }
  static std::vector<std::vector<int32_t>> Prompts() {
    std::vector<std::vector<int32_t>> prompts;
    uint32_t random = 5;
    for (const size_t length : {1, 18, 40}) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (size_t i = 0; i < length; ++i) {
        random = random * 1664525u + 1013904223u;
        prompt.push_back(static_cast<int32_t>(random >> 16) % 61 + 3);
      }
    }
    return prompts;
  }
  // Returns the numbers of ranks that can run the model.
  static std::vector<int64_t> NumsOfRanks(const VllmConfig& config) {
    std::vector<int64_t> possible;
    for (const int64_t ranks : {2, 3, 4, 8}) {
      VllmConfig split = config;
      split.parallel.tensor_parallel_size = ranks;
      try {
        split.Finalize();
        ManyRequests engine(split);
        possible.push_back(ranks);
      } catch (const ConfigError&) {
        // The number does not divide the heads.
      }
    }
    return possible;
  }
  static void ExpectTheSameBits(VllmConfig config, const std::vector<int64_t>& nums_of_ranks) {
    constexpr int64_t kNumOutputs = 6, kChunk = 25;
    config.Finalize();
    ManyRequests one(config);
    const auto expected = one.Run(Prompts(), kNumOutputs, kChunk);
    for (const int64_t ranks : nums_of_ranks) {
      config.parallel.tensor_parallel_size = ranks;
      ManyRequests several(config);
      EXPECT_EQ(several.Run(Prompts(), kNumOutputs, kChunk), expected) << ranks << " ranks";
    }
  }
};

// Returns the paths of the models relative to the test data.
std::vector<std::string> Models() {
  std::vector<std::string> models;
  for (const std::string& path : TestModels()) {
    models.push_back(std::filesystem::relative(path, VLLMCLI_TEST_DATA).string());
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, RanksTest, testing::ValuesIn(Models()), [](const auto& model) {
  std::string name = model.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST_P(RanksTest, NumberOfRanksDoesNotChangeResults) {
  const std::vector<int64_t> nums_of_ranks = NumsOfRanks(Config(kernels::DType::kFloat32, QuantizationMethod::kNone));
  ASSERT_FALSE(nums_of_ranks.empty());
  for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16, kernels::DType::kFloat16}) {
    ExpectTheSameBits(Config(dtype, QuantizationMethod::kNone), nums_of_ranks);
  }
  const VllmConfig plain = Config(kernels::DType::kBFloat16, QuantizationMethod::kNone);
  const bool is_quantized = plain.model.quantization.method != QuantizationMethod::kNone;
  if (is_quantized || GetParam().ends_with(".gguf")) return;
  for (const QuantizationMethod method : {QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    ExpectTheSameBits(Config(kernels::DType::kBFloat16, method), nums_of_ranks);
  }
}

}  // namespace
}  // namespace vllm
