// For every decoder family and each of its config switches that changes the arithmetic, compares a model's float32
// log-probabilities, greedy tokens and bfloat16 errors with those of transformers. tests/golden/models_golden.py makes
// the checkpoints and the expected values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/hf/safetensors.h"
#include "kernels/matrix/packed_matrix.h"
#include "tests/support/one_request.h"
#include "tests/support/spread.h"

namespace vllm {
namespace {

using testing_support::OneRequest;

constexpr size_t kVocab = 64;
constexpr int64_t kMaxTokens = 64;

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/models")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the log-probabilities at `position` in the order of token ids.
std::vector<double> InTokenOrder(const Logprobs& logprobs, size_t position) {
  std::vector<double> row(kVocab, std::nan(""));
  for (size_t k = 0; k < logprobs.width; ++k) {
    const size_t index = position * logprobs.width + k;
    row[static_cast<size_t>(logprobs.token_ids[index])] = logprobs.logprobs[index];
  }
  return row;
}

size_t Best(const std::vector<double>& row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

class ModelGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream file(Directory() + "/golden.json");
    golden_ = nlohmann::json::parse(file);
  }
  std::string Directory() const { return std::string(VLLMCLI_TEST_DATA) + "/models/" + GetParam(); }

  VllmConfig Config(int64_t ranks, kernels::DType dtype) const {
    VllmConfig config;
    config.model = LoadModelConfig(Directory());
    config.model.dtype = dtype;
    if (golden_.contains("max_model_len")) config.model.max_model_len = golden_["max_model_len"];
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    return config;
  }

  // Returns transformers' float32 log-probabilities at the first 72 positions of the last Sequence().
  std::vector<std::vector<double>> GoldenRows() const {
    const SafetensorsFile file(Directory() + "/golden.safetensors");
    std::vector<std::vector<double>> rows;
    const std::array<int64_t, 2> shape{72, kVocab};
    const TensorView view = file.Get("logits", shape);
    std::vector<float> logits(static_cast<size_t>(view.num_elements()));
    kernels::ConvertToFloat(view.data.data(), view.dtype(), view.num_elements(), logits.data());
    for (size_t begin = 0; begin < logits.size(); begin += kVocab) {
      std::vector<double> row(logits.begin() + static_cast<std::ptrdiff_t>(begin),
                              logits.begin() + static_cast<std::ptrdiff_t>(begin + kVocab));
      double sum = 0.0;
      for (const double x : row) sum += std::exp(x);
      for (double& x : row) x -= std::log(sum);
      rows.push_back(row);
    }
    return rows;
  }
  std::vector<int32_t> Sequence(size_t i) const {
    auto sequence = golden_["prompts"][i].get<std::vector<int32_t>>();
    const auto output = golden_["outputs"][i].get<std::vector<int32_t>>();
    sequence.insert(sequence.end(), output.begin(), output.end());
    return sequence;
  }

  // Returns the difference between the engine's log-probabilities and GoldenRows(), over all positions.
  testing_support::Difference DifferenceOf(OneRequest& engine, int64_t chunk) const {
    const std::vector<std::vector<double>> expected = GoldenRows();
    std::vector<int32_t> prompt = Sequence(golden_["prompts"].size() - 1);
    prompt.resize(expected.size());
    engine.Greedy(prompt, 1, chunk, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    EXPECT_EQ(got.num_positions(), expected.size());
    testing_support::DifferenceSum sum;
    for (size_t position = 0; position < expected.size(); ++position) {
      const std::vector<double> row = InTokenOrder(got, position);
      for (size_t k = 0; k < kVocab; ++k) sum.Add(row[k] - expected[position][k]);
    }
    return sum.Result();
  }
  // Returns the smallest of the golden rows' standard deviations.
  double Spread() const {
    double smallest = 1e30;
    for (const std::vector<double>& row : GoldenRows()) {
      smallest = std::min(smallest, testing_support::Spread(std::span(row)));
    }
    return smallest;
  }
  void ExpectGreedy(OneRequest& engine, int64_t chunk) const {
    for (size_t i = 0; i < golden_["prompts"].size(); ++i) {
      const auto prompt = golden_["prompts"][i].get<std::vector<int32_t>>();
      EXPECT_EQ(engine.Greedy(prompt, kMaxTokens, chunk), golden_["outputs"][i].get<std::vector<int32_t>>()) << i;
    }
  }

  nlohmann::json golden_;
};

INSTANTIATE_TEST_SUITE_P(Families, ModelGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& case_name) { return case_name.param; });

TEST_P(ModelGoldenTest, LogprobsAgreeWithTransformers) {
  OneRequest engine(Config(1, kernels::DType::kFloat32));
  const double worst = DifferenceOf(engine, 2048).worst;
  EXPECT_LE(worst, 1e-4 * Spread());
  RecordProperty("worst", std::to_string(worst / Spread()));
}

TEST_P(ModelGoldenTest, LogprobsAgreeWithTransformersInChunks) {
  OneRequest engine(Config(1, kernels::DType::kFloat32));
  EXPECT_LE(DifferenceOf(engine, 7).worst, 1e-4 * Spread());
}

TEST_P(ModelGoldenTest, GreedyTokensEqualThoseOfTransformers) {
  OneRequest engine(Config(1, kernels::DType::kFloat32));
  ExpectGreedy(engine, 2048);
}

TEST_P(ModelGoldenTest, TwoRanksAgreeWithTransformers) {
  OneRequest engine(Config(2, kernels::DType::kFloat32));
  EXPECT_LE(DifferenceOf(engine, 2048).worst, 1e-4 * Spread());
  ExpectGreedy(engine, 7);
}

TEST_P(ModelGoldenTest, BFloat16ErrorIsAtMostThatOfTransformers) {
  OneRequest engine(Config(1, kernels::DType::kBFloat16));
  const double error = DifferenceOf(engine, 2048).root_mean_square;
  EXPECT_LE(error, golden_["bfloat16_error"].get<double>());
  RecordProperty("ratio", std::to_string(error / golden_["bfloat16_error"].get<double>()));
}

TEST_P(ModelGoldenTest, BFloat16ChoosesTheSameTokenAsTransformersAtAlmostEveryPosition) {
  OneRequest engine(Config(1, kernels::DType::kBFloat16));
  size_t num_equal = 0, num_positions = 0;
  for (size_t i = 0; i < golden_["prompts"].size(); ++i) {
    const auto expected = golden_["bfloat16_top1"][i].get<std::vector<size_t>>();
    engine.Greedy(Sequence(i), 1, 2048, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    ASSERT_EQ(got.num_positions(), expected.size());
    for (size_t position = 0; position < expected.size(); ++position) {
      num_equal += Best(InTokenOrder(got, position)) == expected[position] ? 1 : 0;
    }
    num_positions += expected.size();
  }
  const double share = static_cast<double>(num_equal) / static_cast<double>(num_positions);
  EXPECT_GE(share, 0.98);
  RecordProperty("share", std::to_string(share));
}

}  // namespace
}  // namespace vllm
