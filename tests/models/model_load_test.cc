// Tests which models are rejected at load and with which message, that every family runs on dummy weights, and that
// tiny-random-gpt2 gives the reference tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/models/registry.h"
#include "tests/support/one_request.h"
#include "tests/support/realdata.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing_support::OneRequest;
using testing_support::ReadJson;
using testing_support::RealData;

VllmConfig ConfigOf(const std::string& name, int64_t ranks = 1) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/" + name);
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = 1;
  return config;
}

// Returns the message of the Error that loading throws, or an empty string if it throws nothing.
template <typename Error>
std::string Rejection(const VllmConfig& config) {
  try {
    OneRequest engine(config);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ModelLoadTest, UnknownArchitectureIsRejectedByName) {
  VllmConfig config = ConfigOf("llama");
  config.model.architecture = "MambaForCausalLM";
  const std::string message = Rejection<ModelError>(config);
  EXPECT_NE(message.find("unknown architecture (MambaForCausalLM)"), std::string::npos) << message;
}

// mamba_ssm and older versions of transformers wrote this name.
TEST(ModelLoadTest, TheEmbeddingOfMamba2MayHaveItsOldName) {
  const std::string source = std::string(VLLMCLI_TEST_DATA) + "/models/mamba2/";
  TempDirectory directory;
  std::filesystem::copy(source + "config.json", directory.path());
  std::ifstream file(source + "model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name = bytes.find("backbone.embeddings.weight");
  ASSERT_NE(name, std::string::npos);
  bytes.erase(bytes.find("s.weight", name), 1);
  bytes.insert(bytes.find("}}") + 2, " ");  // the header keeps its length
  directory.Write("model.safetensors", bytes);

  VllmConfig renamed;
  renamed.model = LoadModelConfig(directory.path());
  renamed.Finalize();
  OneRequest engine(renamed), original(ConfigOf("mamba2"));
  EXPECT_EQ(engine.Greedy({5, 6, 7}, 20, 64), original.Greedy({5, 6, 7}, 20, 64));
}

TEST(ModelLoadTest, UnknownActivationIsRejectedWithAListOfKnownOnes) {
  VllmConfig config = ConfigOf("llama");
  config.model.hidden_act = "mish";
  const std::string message = Rejection<ModelError>(config);
  EXPECT_NE(message.find("unknown activation (mish; known: silu, swish, gelu, "), std::string::npos) << message;
}

TEST(ModelLoadTest, UnknownTextModelTypeIsRejectedWithAListOfKnownOnes) {
  VllmConfig config = ConfigOf("gemma3_vision");
  config.model.model_type = "mamba";
  const std::string message = Rejection<ModelError>(config);
  EXPECT_NE(message.find("unknown text_config.model_type (mamba; known: llama, "), std::string::npos) << message;
}

TEST(ModelLoadTest, WorldSizeThatDoesNotDivideTheHeadsIsRejected) {
  EXPECT_NE(Rejection<ConfigError>(ConfigOf("gpt2", 3)).find("does not divide the model's 4 attention heads (3)"),
            std::string::npos);
  VllmConfig config = ConfigOf("qwen3", 3);
  EXPECT_THROW(config.Finalize(), ConfigError);
}

TEST(ModelLoadTest, MissingTensorsAreNamed) {
  VllmConfig config = ConfigOf("qwen3");
  config.model.architecture = "Olmo2ForCausalLM";
  EXPECT_NE(Rejection<ModelError>(config).find("post_feedforward_layernorm.weight"), std::string::npos);
}

TEST(ModelLoadTest, StackedExpertsOfTheWrongShapeAreNamed) {
  VllmConfig config = ConfigOf("gpt_oss_moe_mxfp4");
  config.model.moe_intermediate_size = 64;
  EXPECT_NE(Rejection<ModelError>(config).find("mlp.experts.gate_up_proj_blocks"), std::string::npos);
  config.model.moe_intermediate_size = 20;
  EXPECT_NE(Rejection<ModelError>(config).find("must be multiples of 32 (32, 20)"), std::string::npos);
  VllmConfig plain = ConfigOf("gpt_oss_moe");
  plain.model.num_experts = 5;
  EXPECT_NE(Rejection<ModelError>(plain).find("mlp.router.weight"), std::string::npos);
  plain.model.num_experts = 4;
  plain.model.moe_intermediate_size = 21;
  EXPECT_NE(Rejection<ModelError>(plain).find("mlp.experts.gate_up_proj"), std::string::npos);
}

TEST(ModelLoadTest, QuantizingMxfp4ExpertsAtLoadIsRejected) {
  VllmConfig config = ConfigOf("gpt_oss_moe_mxfp4");
  config.model.quantization.method = QuantizationMethod::kInt8;
  EXPECT_NE(Rejection<ConfigError>(config).find("is already quantized (MXFP4)"), std::string::npos);
}

TEST(ModelLoadTest, EveryFamilyRunsOnDummyWeights) {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/models")) {
    const std::string name = entry.path().filename().string();
    for (const int64_t ranks : {1, 2}) {
      VllmConfig config = ConfigOf(name, ranks);
      config.load.load_format = LoadFormat::kDummy;
      config.Finalize();
      OneRequest engine(config);
      EXPECT_EQ(engine.Greedy({5, 6, 7}, 3, 2048).size(), 3u) << name;
    }
  }
}

TEST(ModelLoadTest, TinyRandomGpt2GivesTheReferenceTokens) {
  VLLMCLI_NEEDS_REALDATA("references/tiny-random-gpt2.greedy_logits.json");
  VllmConfig config;
  config.model = LoadModelConfig(RealData("models/tiny-random-gpt2/hf-f32"));
  config.Finalize();
  OneRequest engine(config);
  const nlohmann::json reference = ReadJson(RealData("references/tiny-random-gpt2.greedy_logits.json"));
  for (const nlohmann::json& c : reference["cases"]) {
    const auto expected = c["greedy_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(engine.Greedy(c["ids"].get<std::vector<int32_t>>(), static_cast<int64_t>(expected.size()), 2048),
              expected);
  }
}

}  // namespace
}  // namespace vllm
