// Compares models with LoRA adapters with PEFT: for each option of PEFT that changes the arithmetic, the float32
// log-probabilities agree. tests/golden/lora_golden.py makes the adapters and the expected values.
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
#include "engine/lora/load_adapter.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/hf/safetensors.h"
#include "kernels/matrix/packed_matrix.h"
#include "tests/support/many_requests.h"
#include "tests/support/one_request.h"
#include "tests/support/spread.h"

namespace vllm {
namespace {

using testing_support::ManyRequests;
using testing_support::OneRequest;

constexpr size_t kVocab = 64;
constexpr int64_t kNumPositions = 72;

std::string Data() { return VLLMCLI_TEST_DATA; }

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Data() + "/lora")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
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

class LoRAGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  static std::string Adapter() { return Data() + "/lora/" + GetParam(); }
  static std::string Base() {
    return Data() + "/models/" + std::string(ReadJson(Adapter() + "/adapter_config.json")["base_model_name_or_path"]);
  }
  static VllmConfig Config(const std::string& adapter, int64_t ranks, kernels::DType dtype) {
    VllmConfig config;
    config.model = LoadModelConfig(Base());
    config.model.dtype = dtype;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    config.lora.adapters.push_back(LoadLoRAAdapter("test", adapter, config.model, 64));
    return config;
  }
  // Returns PEFT's log-probabilities. [72][kVocab]
  static std::vector<std::vector<double>> GoldenRows() {
    const SafetensorsFile file(Adapter() + "/golden.safetensors");
    const TensorView view = file.Get("logits", std::array<int64_t, 2>{kNumPositions, kVocab});
    std::vector<std::vector<double>> rows;
    for (int64_t position = 0; position < kNumPositions; ++position) {
      std::array<float, kVocab> logits;
      kernels::ConvertToFloat(view.Row(position), view.dtype(), kVocab, logits.data());
      std::vector<double>& row = rows.emplace_back(logits.begin(), logits.end());
      double sum = 0.0;
      for (const double x : row) sum += std::exp(x);
      for (double& x : row) x -= std::log(sum);
    }
    return rows;
  }
  // Returns the largest difference between the engine's log-probabilities and GoldenRows(), in units of the smallest
  // standard deviation of a golden row.
  static double WorstDifference(OneRequest& engine, int64_t chunk) {
    const nlohmann::json golden = ReadJson(Base() + "/golden.json");
    auto ids = golden["prompts"].back().get<std::vector<int32_t>>();
    for (const int32_t id : golden["outputs"].back()) ids.push_back(id);
    ids.resize(kNumPositions);
    engine.Greedy(ids, 1, chunk, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    const std::vector<std::vector<double>> expected = GoldenRows();
    EXPECT_EQ(got.num_positions(), expected.size());
    double worst = 0.0, spread = 1e30;
    for (size_t position = 0; position < expected.size(); ++position) {
      const std::vector<double> row = InTokenOrder(got, position);
      for (size_t k = 0; k < kVocab; ++k) worst = std::max(worst, std::abs(row[k] - expected[position][k]));
      spread = std::min(spread, testing_support::Spread(std::span(expected[position])));
    }
    return worst / spread;
  }
  static std::vector<std::vector<int32_t>> Prompts() {
    std::vector<std::vector<int32_t>> prompts;
    uint32_t random = 1;
    for (const size_t length : {3, 7, 16, 17, 30, 40, 1}) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (size_t i = 0; i < length; ++i) {
        random = random * 1664525u + 1013904223u;
        prompt.push_back(static_cast<int32_t>(random >> 16) % 61 + 3);
      }
    }
    return prompts;
  }
};

INSTANTIATE_TEST_SUITE_P(Options, LoRAGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& case_name) { return case_name.param; });

TEST_P(LoRAGoldenTest, LogprobsAgreeWithPeft) {
  OneRequest engine(Config(Adapter(), 1, kernels::DType::kFloat32));
  engine.lora_slot = 0;
  EXPECT_LE(WorstDifference(engine, 2048), 1e-4);
}

TEST_P(LoRAGoldenTest, LogprobsAgreeWithPeftInChunks) {
  OneRequest engine(Config(Adapter(), 1, kernels::DType::kFloat32));
  engine.lora_slot = 0;
  EXPECT_LE(WorstDifference(engine, 7), 1e-4);
}

TEST_P(LoRAGoldenTest, TwoRanksAgreeWithPeft) {
  OneRequest engine(Config(Adapter(), 2, kernels::DType::kFloat32));
  engine.lora_slot = 0;
  EXPECT_LE(WorstDifference(engine, 2048), 1e-4);
}

TEST_P(LoRAGoldenTest, RowsWithAndWithoutTheAdapterComputeTheSameBitsTogetherAsAlone) {
  for (const int64_t ranks : {1, 2}) {
    for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16}) {
      const VllmConfig with = Config(Adapter(), ranks, dtype);
      VllmConfig without = with;
      without.lora = {};
      ManyRequests engine(with), base(without);
      const std::vector<std::vector<int32_t>> prompts = Prompts();
      const std::vector<int32_t> slots = {0, -1, 0, -1, -1, 0, 0};
      const auto together = engine.Run(prompts, 8, 16, slots);
      for (size_t i = 0; i < prompts.size(); ++i) {
        ManyRequests& alone = slots[i] < 0 ? base : engine;
        EXPECT_EQ(alone.Run({prompts[i]}, 8, 2048, {slots[i]})[0], together[i]) << "request " << i;
      }
    }
  }
}

TEST_P(LoRAGoldenTest, TheAdapterChangesTheResult) {
  OneRequest engine(Config(Adapter(), 1, kernels::DType::kFloat32));
  EXPECT_GE(WorstDifference(engine, 2048), 1e-2);
}

using GgufLoRAGoldenTest = LoRAGoldenTest;
INSTANTIATE_TEST_SUITE_P(Options, GgufLoRAGoldenTest, testing::Values("all_linear", "quantized_gguf"));

TEST_P(GgufLoRAGoldenTest, GgufAdapterAgreesWithPeft) {
  OneRequest engine(Config(Adapter() + "/adapter.gguf", 1, kernels::DType::kFloat32));
  engine.lora_slot = 0;
  EXPECT_LE(WorstDifference(engine, 2048), 1e-4);
}

TEST_P(GgufLoRAGoldenTest, GgufAdapterGivesTheBitsOfThePeftDirectory) {
  for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16}) {
    ManyRequests gguf(Config(Adapter() + "/adapter.gguf", 2, dtype)), peft(Config(Adapter(), 2, dtype));
    const std::vector<int32_t> slots(Prompts().size(), 0);
    EXPECT_EQ(gguf.Run(Prompts(), 8, 16, slots), peft.Run(Prompts(), 8, 16, slots));
  }
}

}  // namespace
}  // namespace vllm
