// For each switch of a Llama config that changes the arithmetic, compares a model's float32 log-probabilities and
// bfloat16 error with those of transformers. tests/golden/llama_golden.py makes the checkpoints and the expected
// values.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/weights.h"
#include "kernels/matrix/packed_matrix.h"
#include "tests/support/one_request.h"

namespace vllm {
namespace {

using testing_support::OneRequest;

constexpr int64_t kVocab = 64;
constexpr int64_t kLength = 60;

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/llama")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class LlamaGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  VllmConfig Config(int64_t ranks, kernels::DType dtype) const {
    VllmConfig config;
    config.model = LoadModelConfig(Directory());
    config.model.dtype = dtype;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    return config;
  }
  std::string Directory() const { return std::string(VLLMCLI_TEST_DATA) + "/llama/" + GetParam(); }

  // Reads a tensor of golden.safetensors by opening a copy of the file as a checkpoint.
  std::vector<float> Golden(const std::string& name, const std::vector<int64_t>& shape) const {
    const auto directory =
        std::filesystem::path(testing::TempDir()) / ("golden_" + GetParam() + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    std::filesystem::copy_file(Directory() + "/golden.safetensors", directory / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    VllmConfig config;
    config.model.directory = directory.string();
    config.model.model = directory.string();
    const auto weights = OpenWeights(config);
    const TensorView view = weights->Get(name, shape);
    std::vector<float> values(static_cast<size_t>(view.num_elements()));
    kernels::ConvertToFloat(view.data.data(), view.dtype(), view.num_elements(), values.data());
    std::filesystem::remove_all(directory);
    return values;
  }

  // Expects the log-probabilities of all positions to be within `tolerance` of the golden ones.
  void ExpectGolden(const VllmConfig& config, int64_t chunk, double tolerance) const {
    const std::vector<float> ids = Golden("ids", {kLength});
    const std::vector<float> expected = Golden("logprobs", {kLength, kVocab});
    std::vector<int32_t> prompt;
    for (const float id : ids) prompt.push_back(static_cast<int32_t>(id));
    OneRequest engine(config);
    engine.Greedy(prompt, 1, chunk, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    ASSERT_EQ(got.num_positions(), static_cast<size_t>(kLength));
    ASSERT_EQ(got.width, static_cast<size_t>(kVocab) + 1);
    double worst = 0.0;
    for (size_t position = 0; position < static_cast<size_t>(kLength); ++position) {
      for (size_t k = 0; k < got.width; ++k) {
        const size_t index = position * got.width + k;
        const double golden = expected[position * kVocab + static_cast<size_t>(got.token_ids[index])];
        worst = std::max(worst, std::abs(got.logprobs[index] - golden));
      }
    }
    EXPECT_LT(worst, tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Switches, LlamaGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& switch_name) { return switch_name.param; });

TEST_P(LlamaGoldenTest, AgreesWithTransformers) { ExpectGolden(Config(1, kernels::DType::kFloat32), 2048, 1e-4); }

TEST_P(LlamaGoldenTest, AgreesWithTransformersInChunks) { ExpectGolden(Config(1, kernels::DType::kFloat32), 7, 1e-4); }

TEST_P(LlamaGoldenTest, AgreesWithTransformersOnTwoRanks) {
  ExpectGolden(Config(2, kernels::DType::kFloat32), 2048, 1e-4);
}

TEST_P(LlamaGoldenTest, AgreesWithTransformersOnFourRanks) {
  // Most of these models have two KV heads, so two ranks hold copies of each head.
  ExpectGolden(Config(4, kernels::DType::kFloat32), 2048, 1e-4);
}

TEST_P(LlamaGoldenTest, AgreesWithTransformersWithOpenBlas) {
  VllmConfig config = Config(1, kernels::DType::kFloat32);
  config.linear_backend = LinearBackend::kOpenBlas;
  ExpectGolden(config, 2048, 1e-4);
}

TEST_P(LlamaGoldenTest, BFloat16ErrorIsAtMostThatOfTransformers) {
  ExpectGolden(Config(1, kernels::DType::kBFloat16), 2048, Golden("bfloat16_error", {1})[0]);
}

}  // namespace
}  // namespace vllm
