// Tests reading LoRA adapters: which files are accepted, and how each fault is reported.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/lora/load_adapter.h"
#include "engine/lora/lora_modules.h"
#include "engine/lora/peft_config.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing_support::Shapes;

std::string Safetensors(const Shapes& shapes) {
  return testing_support::SafetensorsBytes(shapes, [] { return 1.0f; });
}

const std::string kQ = "base_model.model.model.layers.0.self_attn.q_proj";

nlohmann::json PlainConfig() {
  return {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 4}, {"target_modules", {"q_proj"}}, {"bias", "none"}};
}

Shapes PlainTensors() { return {{kQ + ".lora_A.weight", {2, 32}}, {kQ + ".lora_B.weight", {32, 2}}}; }

class AdapterFilesTest : public testing::Test {
 protected:
  AdapterFilesTest() : model_(LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/llama")) {}

  void Write(const nlohmann::json& config, const Shapes& tensors) {
    directory_.Write("adapter_config.json", config.dump());
    directory_.Write("adapter_model.safetensors", Safetensors(tensors));
  }
  std::shared_ptr<const LoRAAdapter> Load(int64_t max_lora_rank = 16) const {
    return LoadLoRAAdapter("test", directory_.path(), model_, max_lora_rank);
  }
  std::string LoadError(int64_t max_lora_rank = 16) const {
    return MessageOf<ModelError>([&] { Load(max_lora_rank); });
  }
  void ExpectError(const nlohmann::json& config, const Shapes& tensors, const std::string& expected) {
    Write(config, tensors);
    const std::string error = LoadError();
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
  void ExpectConfigError(const char* field, const nlohmann::json& value, const std::string& expected) {
    nlohmann::json config = PlainConfig();
    config[field] = value;
    ExpectError(config, PlainTensors(), expected);
  }

  TempDirectory directory_;
  ModelConfig model_;
};

TEST_F(AdapterFilesTest, APlainAdapterIsLoaded) {
  Write(PlainConfig(), PlainTensors());
  const auto adapter = Load();
  ASSERT_EQ(adapter->modules.size(), 1u);
  EXPECT_EQ(adapter->modules[0].name, "layers.0.self_attn.q_proj");
  EXPECT_EQ(adapter->modules[0].rank, 2);
  EXPECT_EQ(adapter->modules[0].scale, 2.0);
  EXPECT_EQ(adapter->digest.size(), 16u);
}

TEST_F(AdapterFilesTest, NamesOfOlderFilesAreAccepted) {
  for (const char* prefix : {"", "base_model.model.", "base_model.model.model.", "model.language_model."}) {
    const std::string module = std::string(prefix) + "layers.0.self_attn.q_proj";
    Write(PlainConfig(), {{module + ".lora_A.default.weight", {2, 32}}, {module + ".lora_B.default.weight", {32, 2}}});
    EXPECT_EQ(Load()->modules.at(0).name, "layers.0.self_attn.q_proj") << prefix;
  }
}

TEST_F(AdapterFilesTest, TheDigestChangesWithTheConfigurationAndWithTheWeights) {
  Write(PlainConfig(), PlainTensors());
  const std::string digest = Load()->digest;
  nlohmann::json config = PlainConfig();
  config["lora_alpha"] = 5;
  Write(config, PlainTensors());
  EXPECT_NE(Load()->digest, digest);
  std::string bytes = Safetensors(PlainTensors());
  bytes.back() ^= 1;
  Write(PlainConfig(), PlainTensors());
  EXPECT_EQ(Load()->digest, digest);
  directory_.Write("adapter_model.safetensors", bytes);
  EXPECT_NE(Load()->digest, digest);
}

TEST_F(AdapterFilesTest, OptionsThatAreNotSupportedAreNamed) {
  ExpectConfigError("peft_type", "LOHA", "peft_type: only LORA adapters are supported");
  ExpectConfigError("use_dora", true, "has no lora_magnitude_vector although adapter_config.json has use_dora");
  ExpectConfigError("modules_to_save", {"lm_head"}, "modules_to_save: this option of PEFT is not supported");
  ExpectConfigError("alora_invocation_tokens", {1, 2}, "alora_invocation_tokens: this option");
  ExpectConfigError("layer_replication", {{0, 1}}, "layer_replication: this option");
  ExpectConfigError("trainable_token_indices", {5}, "trainable_token_indices: this option");
  ExpectConfigError("target_parameters", {"mlp.experts.down_proj"}, "target_parameters: this option");
  ExpectConfigError("use_qalora", true, "use_qalora: this option");
  ExpectConfigError("an_option_of_the_future", 3, "an_option_of_the_future: this option");
  ExpectConfigError("init_lora_weights", "pissa_niter_4", "init_lora_weights: this initialization changes the weights");
  ExpectConfigError("bias", "some", "bias: must be none, all or lora_only");
}

TEST_F(AdapterFilesTest, OptionsThatAreNotSetAreIgnored) {
  nlohmann::json config = PlainConfig();
  for (const char* field : {"use_dora", "use_qalora"}) config[field] = false;
  for (const char* field : {"modules_to_save", "layer_replication", "an_option_of_the_future"}) config[field] = nullptr;
  config["init_lora_weights"] = "gaussian";
  config["lora_dropout"] = 0.1;
  Write(config, PlainTensors());
  EXPECT_EQ(Load()->modules.size(), 1u);
}

TEST_F(AdapterFilesTest, TensorsThatDoNotBelongToALoRAModuleAreNamed) {
  for (const char* suffix : {".lora_magnitude_vector", ".weight", ".hada_w1_a"}) {
    Shapes tensors = PlainTensors();
    tensors[kQ + suffix] = {32, 32};
    ExpectError(PlainConfig(), tensors, "tensor " + kQ + suffix + ": ");
  }
  Shapes tensors = PlainTensors();
  tensors[kQ + ".bias"] = {32};
  ExpectError(PlainConfig(), tensors, ".bias: adapter_config.json has \"bias\": \"none\"");
  tensors = PlainTensors();
  tensors[kQ + ".lora_B.bias"] = {32};
  ExpectError(PlainConfig(), tensors, ".lora_B.bias: adapter_config.json does not have lora_bias");
}

TEST_F(AdapterFilesTest, MatricesThatDoNotFitEachOtherAreNamed) {
  Shapes tensors = PlainTensors();
  tensors.erase(kQ + ".lora_B.weight");
  ExpectError(PlainConfig(), tensors, ".lora_A.weight: the file has no lora_B for this module");
  tensors = PlainTensors();
  tensors.erase(kQ + ".lora_A.weight");
  ExpectError(PlainConfig(), tensors, ".lora_B.weight: the file has no lora_A for this module");
  tensors = PlainTensors();
  tensors[kQ + ".lora_B.weight"] = {32, 3};
  ExpectError(PlainConfig(), tensors, ".lora_B.weight: has 3 columns but lora_A has 2 rows");
  tensors[kQ + ".lora_A.weight"] = {3, 32};
  ExpectError(PlainConfig(), tensors, "rank is 3 but r and rank_pattern of adapter_config.json say 2");
  tensors = PlainTensors();
  tensors[kQ + ".lora_A.weight"] = {2, 4, 8};
  ExpectError(PlainConfig(), tensors, "wrong number of dimensions");
  tensors[kQ + ".lora_A.weight"] = {0, 32};
  ExpectError(PlainConfig(), tensors, "the tensor is empty");
  tensors = PlainTensors();
  tensors["model.layers.0.self_attn.q_proj.lora_A.weight"] = {2, 32};
  ExpectError(PlainConfig(), tensors, "the same matrix twice");
}

TEST_F(AdapterFilesTest, ARankAboveTheLimitIsRejected) {
  Write(PlainConfig(), PlainTensors());
  EXPECT_NE(LoadError(1).find("rank is above the limit (2 > 1)"), std::string::npos);
}

TEST_F(AdapterFilesTest, FaultsOfTheDirectoryAreReported) {
  EXPECT_NE(LoadError().find("there is no adapter_config.json"), std::string::npos);
  directory_.Write("adapter_config.json", PlainConfig().dump());
  EXPECT_NE(LoadError().find("there is no adapter_model.safetensors"), std::string::npos);
  directory_.Write("adapter_model.bin", "x");
  EXPECT_NE(LoadError().find("there is only a pickle file"), std::string::npos);
  const std::string error =
      MessageOf<ModelError>([&] { LoadLoRAAdapter("test", directory_.path() + "/missing", model_, 16); });
  EXPECT_NE(error.find("no such file or directory"), std::string::npos) << error;
}

TEST_F(AdapterFilesTest, FilesCutAtEveryByteAreRejected) {
  const std::string config = PlainConfig().dump(), weights = Safetensors(PlainTensors());
  Write(PlainConfig(), PlainTensors());
  for (size_t size = 0; size < config.size(); ++size) {
    directory_.Write("adapter_config.json", config.substr(0, size));
    EXPECT_FALSE(LoadError().empty()) << size;
  }
  directory_.Write("adapter_config.json", config);
  for (size_t size = 0; size < weights.size(); ++size) {
    directory_.Write("adapter_model.safetensors", weights.substr(0, size));
    EXPECT_FALSE(LoadError().empty()) << size;
  }
}

TEST_F(AdapterFilesTest, GgufAdaptersCutAtEveryByteAreRejected) {
  std::ifstream file(std::string(VLLMCLI_TEST_DATA) + "/lora/all_linear/adapter.gguf", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (size_t size = 0; size < bytes.size(); size += size < 4096 ? 1 : 97) {
    const std::string path = directory_.Write("adapter.gguf", std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(MessageOf<ModelError>([&] { LoadLoRAAdapter("test", path, model_, 16); }).empty()) << size;
  }
}

TEST_F(AdapterFilesTest, AGgufModelIsNoAdapter) {
  const std::string path = std::string(VLLMCLI_TEST_DATA) + "/lora/all_linear/adapter.gguf";
  EXPECT_EQ(LoadLoRAAdapter("test", path, model_, 16)->modules.size(), 14u);
  ModelConfig other = model_;
  other.architecture = "Qwen2ForCausalLM";
  const std::string error = MessageOf<ModelError>([&] { LoadLoRAAdapter("test", path, other, 16); });
  EXPECT_NE(error.find("the adapter is for LlamaForCausalLM but the model is Qwen2ForCausalLM"), std::string::npos)
      << error;
}

class LoRAModulesTest : public AdapterFilesTest {
 protected:
  LoRAModulesTest() {
    VllmConfig config;
    config.model = model_;
    base_ = OpenWeights(config);
  }
  std::unique_ptr<WeightSource> base_;
};

TEST_F(LoRAModulesTest, AModuleThatNoLayerTakesIsNamed) {
  Shapes tensors = PlainTensors();
  tensors["base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"] = {2, 32};
  tensors["base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight"] = {32, 2};
  Write(PlainConfig(), tensors);
  const std::shared_ptr<const LoRAAdapter> adapter = Load();
  const std::string no_tied_head;
  LoRAModules modules(*adapter, *base_, no_tied_head);
  EXPECT_NE(modules.Take(LoRAModule::Kind::kLinear, "model.layers.0.self_attn.q_proj", 32, 32), nullptr);
  EXPECT_EQ(modules.Take(LoRAModule::Kind::kLinear, "model.layers.0.self_attn.k_proj", 32, 16), nullptr);
  const std::string error = MessageOf<ModelError>([&] { modules.CheckAllTaken(); });
  EXPECT_NE(error.find("the model has no layer for tensor base_model.model.model.layers.7.self_attn.q_proj"
                       ".lora_A.weight (1 of 2 modules do not fit)"),
            std::string::npos)
      << error;
}

TEST_F(LoRAModulesTest, AMatrixOfAnotherSizeThanTheLayerIsNamed) {
  Write(PlainConfig(), PlainTensors());
  const std::shared_ptr<const LoRAAdapter> adapter = Load();
  const std::string no_tied_head;
  LoRAModules modules(*adapter, *base_, no_tied_head);
  const auto take = [&](int64_t in, int64_t out) {
    return MessageOf<ModelError>(
        [&] { modules.Take(LoRAModule::Kind::kLinear, "model.layers.0.self_attn.q_proj", in, out); });
  };
  EXPECT_NE(take(64, 32).find("lora_A.weight does not fit the model: the input size is 32"), std::string::npos);
  EXPECT_NE(take(32, 64).find("lora_B.weight does not fit the model: the output size is 32"), std::string::npos);
}

TEST_F(LoRAModulesTest, ACopyOfTheBaseWeightThatDiffersIsRejected) {
  Shapes tensors = PlainTensors();
  tensors[kQ + ".base_layer.weight"] = {32, 32};
  Write(PlainConfig(), tensors);
  const std::shared_ptr<const LoRAAdapter> adapter = Load();
  const std::string no_tied_head;
  LoRAModules modules(*adapter, *base_, no_tied_head);
  const std::string error = MessageOf<ModelError>(
      [&] { modules.Take(LoRAModule::Kind::kLinear, "model.layers.0.self_attn.q_proj", 32, 32); });
  EXPECT_NE(error.find("this copy of a weight of the base model differs"), std::string::npos) << error;
}

PeftConfig Parse(const nlohmann::ordered_json& fields = nlohmann::ordered_json::object()) {
  nlohmann::ordered_json config = {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}};
  config.update(fields);
  return ParsePeftConfig(config.dump(), "test");
}

TEST(PeftConfigTest, TheScaleIsAlphaDividedByTheRank) {
  EXPECT_EQ(Parse().ScaleOf("model.layers.0.self_attn.q_proj"), 2.0);
  EXPECT_EQ(Parse({{"use_rslora", true}}).ScaleOf("model.layers.0.self_attn.q_proj"), 4.0);
}

TEST(PeftConfigTest, TheFirstPatternThatMatchesCounts) {
  const PeftConfig config = Parse({{"alpha_pattern", {{"up_proj", 1}, {"(up|down)_proj", 3}, {"k_proj", 4}}}});
  EXPECT_EQ(config.ScaleOf("model.layers.0.mlp.up_proj"), 0.25);
  EXPECT_EQ(config.ScaleOf("model.layers.0.mlp.down_proj"), 0.75);
}

TEST(PeftConfigTest, APatternMatchesWholePartsOfTheName) {
  const PeftConfig config =
      Parse({{"rank_pattern", {{"proj", 1}, {"model.layers.1.self_attn.q_proj", 2}, {".*_attn.k_proj", 3}}}});
  EXPECT_EQ(config.RankOf("model.layers.0.self_attn.q_proj"), 4);
  EXPECT_EQ(config.RankOf("model.layers.1.self_attn.q_proj"), 2);
  EXPECT_EQ(config.RankOf("model.layers.11.self_attn.q_proj"), 4);
  EXPECT_EQ(config.RankOf("model.layers.0.self_attn.k_proj"), 3);
}

TEST(PeftConfigTest, BadPatternsAreNamed) {
  const auto error = [](const char* field, const nlohmann::ordered_json& patterns) {
    return MessageOf<ModelError>([&] { Parse({{field, patterns}}); });
  };
  EXPECT_NE(error("rank_pattern", {{"q_(proj", 2}}).find("invalid regular expression q_(proj"), std::string::npos);
  EXPECT_NE(error("rank_pattern", {{"q_proj", 0}}).find("rank_pattern.q_proj"), std::string::npos);
  EXPECT_NE(error("alpha_pattern", {{"q_proj", nullptr}}).find("must be a number"), std::string::npos);
  EXPECT_FALSE(error("alpha_pattern", {{"q_proj", "x"}}).empty());
  EXPECT_FALSE(error("alpha_pattern", nlohmann::ordered_json::array({1})).empty());
}

}  // namespace
}  // namespace vllm
