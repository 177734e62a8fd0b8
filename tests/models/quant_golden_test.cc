// Compares quantized checkpoints of every scheme with transformers' float32 log-probabilities for the dequantized
// weights. tests/golden/quant_models_golden.py and gguf_golden.py make the checkpoints and the expected values.
// Splitting a prompt into chunks must not change a bit. Also tests that a model quantized at load stays close to
// the unquantized one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/hf/safetensors.h"
#include "kernels/matrix/packed_matrix.h"
#include "tests/support/one_request.h"
#include "tests/support/realdata.h"
#include "tests/support/spread.h"

namespace vllm {
namespace {

using testing_support::kDequantizedLimit;
using testing_support::OneRequest;

constexpr int64_t kVocab = 64;
constexpr int64_t kLength = 60;

std::vector<std::string> Directories(const std::string& parent) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/" + parent)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Golden {
  explicit Golden(const std::string& directory) {
    const SafetensorsFile file(directory + "/golden.safetensors");
    for (const float id : Read(file, "ids", {kLength})) ids.push_back(static_cast<int32_t>(id));
    logprobs = Read(file, "logprobs", {kLength, kVocab});
  }
  static std::vector<float> Read(const WeightSource& source, const char* name, const std::vector<int64_t>& shape) {
    const TensorView view = source.Get(name, shape);
    std::vector<float> values(static_cast<size_t>(view.num_elements()));
    kernels::ConvertToFloat(view.data.data(), view.dtype(), view.num_elements(), values.data());
    return values;
  }
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
};

VllmConfig Config(const std::string& directory, int64_t ranks = 1, int64_t threads = 1) {
  VllmConfig config;
  config.model = LoadModelConfig(directory);
  config.model.dtype = kernels::DType::kFloat32;
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = threads;
  config.Finalize();
  return config;
}

// Returns the prompt's log-probabilities, position by position, in the order of token ids.
std::vector<double> PromptLogprobs(const VllmConfig& config, const std::vector<int32_t>& prompt, int64_t chunk) {
  OneRequest engine(config);
  engine.Greedy(prompt, 1, chunk, -1, -1);
  Logprobs got = engine.prompt_output;
  got.Append(engine.output_logprobs);
  std::vector<double> values(prompt.size() * kVocab);
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    values[i / got.width * kVocab + static_cast<size_t>(got.token_ids[i])] = got.logprobs[i];
  }
  return values;
}

double Worst(const std::vector<double>& got, const std::vector<float>& expected) {
  return testing_support::DifferenceInSpreads(got, expected, kVocab).worst;
}

class QuantGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  std::string Directory() const { return std::string(VLLMCLI_TEST_DATA) + "/quant/models/" + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Schemes, QuantGoldenTest, testing::ValuesIn(Directories("quant/models")),
                         [](const auto& scheme) { return scheme.param; });

TEST_P(QuantGoldenTest, AgreesWithTransformers) {
  const Golden golden(Directory());
  EXPECT_LE(Worst(PromptLogprobs(Config(Directory()), golden.ids, 2048), golden.logprobs), kDequantizedLimit);
}

TEST_P(QuantGoldenTest, AgreesWithTransformersOnTwoAndFourRanks) {
  const Golden golden(Directory());
  EXPECT_LE(Worst(PromptLogprobs(Config(Directory(), 2), golden.ids, 2048), golden.logprobs), kDequantizedLimit);
  EXPECT_LE(Worst(PromptLogprobs(Config(Directory(), 4), golden.ids, 2048), golden.logprobs), kDequantizedLimit);
}

TEST_P(QuantGoldenTest, ChunksAndThreadsDoNotChangeTheResult) {
  const Golden golden(Directory());
  const std::vector<double> whole = PromptLogprobs(Config(Directory()), golden.ids, 2048);
  EXPECT_EQ(PromptLogprobs(Config(Directory()), golden.ids, 7), whole);
  EXPECT_EQ(PromptLogprobs(Config(Directory()), golden.ids, 1), whole);
  EXPECT_EQ(PromptLogprobs(Config(Directory(), 1, 3), golden.ids, 5), whole);
}

TEST_P(QuantGoldenTest, OpenBlasIsRejected) {
  VllmConfig config = Config(Directory());
  config.linear_backend = LinearBackend::kOpenBlas;
  EXPECT_THROW(OneRequest engine(config), ConfigError);
}

// Returns the mean KL divergence over the positions. The limits below are loose, because rounding errors grow far more
// in models with random weights than in trained ones.
template <typename T>
double Divergence(const std::vector<T>& expected, const std::vector<double>& got) {
  double divergence = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    divergence += std::exp(static_cast<double>(expected[i])) * (expected[i] - got[i]);
  }
  return divergence / kLength;
}

class GgufBlocksTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> BlockFiles() {
  std::vector<std::string> names = {"llama_mixed", "mixtral_q8_0"};
  for (const std::string& name : Directories("gguf")) {
    if (name.starts_with("blocks_") || name.starts_with("nvfp4_")) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocksTest, testing::ValuesIn(BlockFiles()),
                         [](const auto& name) { return name.param; });

TEST_P(GgufBlocksTest, AgreesWithTransformersOnUpToFourRanksAndChunksDoNotChangeTheResult) {
  const std::string directory = std::string(VLLMCLI_TEST_DATA) + "/gguf/" + GetParam();
  const Golden golden(directory);
  for (const int64_t ranks : {1, 2, 4}) {
    VllmConfig config;
    config.model = LoadGgufConfig(directory + "/model.gguf");
    config.model.dtype = kernels::DType::kFloat32;
    config.parallel.threads_per_rank = 1;
    config.parallel.tensor_parallel_size = ranks;
    config.Finalize();
    const std::vector<double> got = PromptLogprobs(config, golden.ids, 2048);
    EXPECT_LE(Worst(got, golden.logprobs), kDequantizedLimit) << ranks << " ranks";
    EXPECT_EQ(PromptLogprobs(config, golden.ids, 5), got) << ranks << " ranks";
  }
}

class QuantizeAtLoadTest : public testing::TestWithParam<std::string> {
 protected:
  std::string Directory() const { return std::string(VLLMCLI_TEST_DATA) + "/llama/" + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Switches, QuantizeAtLoadTest, testing::ValuesIn(Directories("llama")),
                         [](const auto& name) { return name.param; });

TEST_P(QuantizeAtLoadTest, StaysCloseToTheUnquantizedModelAndChunksDoNotChangeTheResult) {
  const Golden golden(Directory());
  for (const QuantizationMethod method : {QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    VllmConfig config = Config(Directory());
    config.model.quantization.method = method;
    const std::vector<double> whole = PromptLogprobs(config, golden.ids, 2048);
    const double divergence = Divergence(golden.logprobs, whole);
    EXPECT_LT(divergence, method == QuantizationMethod::kInt8 ? 0.005 : 0.5);
    EXPECT_GT(divergence, 0.0);
    EXPECT_EQ(PromptLogprobs(config, golden.ids, 7), whole);
  }
}

TEST_P(QuantizeAtLoadTest, TwoRanksStayCloseToTheUnquantizedModel) {
  const Golden golden(Directory());
  VllmConfig config = Config(Directory(), 2);
  config.model.quantization.method = QuantizationMethod::kInt8;
  EXPECT_LT(Divergence(golden.logprobs, PromptLogprobs(config, golden.ids, 2048)), 0.005);
}

class QuantizeFamilyTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> UnquantizedFamilies() {
  std::vector<std::string> names = Directories("models");
  std::erase_if(names, [](const std::string& name) { return name.ends_with("mxfp4"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, QuantizeFamilyTest, testing::ValuesIn(UnquantizedFamilies()),
                         [](const auto& name) { return name.param; });

TEST_P(QuantizeFamilyTest, StaysCloseToTheUnquantizedModelAndChunksDoNotChangeTheResult) {
  const std::string directory = std::string(VLLMCLI_TEST_DATA) + "/models/" + GetParam();
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < kLength; ++i) prompt.push_back(3 + i * i % 61);
  VllmConfig config = Config(directory);
  const std::vector<double> unquantized = PromptLogprobs(config, prompt, 2048);
  for (const QuantizationMethod method : {QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    config.model.quantization.method = method;
    const std::vector<double> whole = PromptLogprobs(config, prompt, 2048);
    // With random weights, even the error of rounding activations to int8 changes which experts are chosen.
    const bool has_experts =
        GetParam().find("mixtral") != std::string::npos || GetParam().find("moe") != std::string::npos;
    EXPECT_LT(Divergence(unquantized, whole), method == QuantizationMethod::kInt8 && !has_experts ? 0.1 : 2.0);
    EXPECT_NE(whole, unquantized);
    EXPECT_EQ(PromptLogprobs(config, prompt, 7), whole);
  }
}

TEST(TrainedQuantTest, QuantizationUsuallyKeepsTheMostProbableTokenOfATrainedModel) {
  VLLMCLI_NEEDS_REALDATA("models/stories260K/hf-f32");
  const std::string directory = testing_support::RealData("models/stories260K/hf-f32");
  OneRequest full(Config(directory));
  const std::vector<int32_t> story = full.Greedy({1, 403, 407}, 200, 2048);
  const auto choices = [&](const VllmConfig& config) {
    OneRequest engine(config);
    engine.Greedy(story, 1, 2048, std::nullopt, 1);
    return engine.prompt_output;
  };
  const Logprobs expected = choices(Config(directory));
  for (const QuantizationMethod method : {QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    VllmConfig config = Config(directory);
    config.model.quantization.method = method;
    const Logprobs got = choices(config);
    ASSERT_EQ(got.num_positions(), expected.num_positions());
    int64_t same = 0;
    for (size_t i = 0; i < got.num_positions(); ++i) {
      same += got.token_ids[i * got.width + 1] == expected.token_ids[i * expected.width + 1] ? 1 : 0;
    }
    const double share = static_cast<double>(same) / static_cast<double>(got.num_positions());
    EXPECT_GT(share, method == QuantizationMethod::kInt8 ? 0.97 : 0.85) << same;
    RecordProperty(method == QuantizationMethod::kInt8 ? "int8" : "int4", std::to_string(share));
  }
}

}  // namespace
}  // namespace vllm
