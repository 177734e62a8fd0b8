// Compares a trained model with a trained LoRA adapter with float64 reference runs: greedy tokens and logits. Skipped
// if the reference data is missing.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/lora/load_adapter.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/one_request.h"
#include "tests/support/realdata.h"

namespace vllm {
namespace {

using testing_support::OneRequest;

class LoRAReferenceTest : public testing::Test {
 protected:
  void SetUp() override {
    VLLMCLI_NEEDS_REALDATA("references/lora-shakespeare.greedy.json");
    cases_ = testing_support::ReadJson(testing_support::RealData("references/lora-shakespeare.greedy.json"))["cases"];
  }
  static VllmConfig Config(int64_t ranks) {
    const std::string models = testing_support::RealData("models/stories260K");
    VllmConfig config;
    config.model = LoadModelConfig(models + "/hf-f32");
    config.model.dtype = kernels::DType::kFloat32;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    config.lora.adapters.push_back(LoadLoRAAdapter("shakespeare", models + "/lora-shakespeare", config.model, 16));
    return config;
  }

  nlohmann::json cases_;
};

TEST_F(LoRAReferenceTest, GreedyTokensAreThoseOfTheReference) {
  for (const int64_t ranks : {1, 2}) {
    OneRequest engine(Config(ranks));
    for (const nlohmann::json& item : cases_) {
      const auto prompt = item["prompt_ids"].get<std::vector<int32_t>>();
      engine.lora_slot = 0;
      EXPECT_EQ(engine.Greedy(prompt, item["max_tokens"], 2048), item["greedy_ids"].get<std::vector<int32_t>>());
      engine.lora_slot = -1;
      EXPECT_EQ(engine.Greedy(prompt, item["max_tokens"], 2048), item["base_greedy_ids"].get<std::vector<int32_t>>());
    }
  }
}

TEST_F(LoRAReferenceTest, LogprobsOfTheLastPromptTokenAreThoseOfTheReference) {
  OneRequest engine(Config(1));
  engine.lora_slot = 0;
  for (const nlohmann::json& item : cases_) {
    engine.Greedy(item["prompt_ids"].get<std::vector<int32_t>>(), 1, 2048, -1);
    const auto logits = item["last_prompt_logits"].get<std::vector<double>>();
    double sum = 0.0;
    for (const double x : logits) sum += std::exp(x);
    const Logprobs& got = engine.output_logprobs;
    ASSERT_GE(got.width, logits.size());
    for (size_t k = 0; k < got.width; ++k) {
      const double expected = logits[static_cast<size_t>(got.token_ids[k])] - std::log(sum);
      ASSERT_NEAR(got.logprobs[k], expected, 1e-4) << "token " << got.token_ids[k];
    }
  }
}

}  // namespace
}  // namespace vllm
