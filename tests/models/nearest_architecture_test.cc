// Tests which architecture is suggested in place of one that does not run. The names are those of published models.
#include "engine/models/nearest_architecture.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "engine/model_loader/gguf/architecture.h"
#include "engine/models/registry.h"

namespace vllm {
namespace {

TEST(NearestArchitectureTest, AKnownArchitectureIsItsOwnNearest) {
  for (const ArchitectureInfo& info : ArchitectureTable()) EXPECT_EQ(NearestArchitecture(info.name), info.name);
}

TEST(NearestArchitectureTest, AnotherGenerationOfTheFamilyIsNear) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"MambaForCausalLM", "Mamba2ForCausalLM"},
      {"PhiForCausalLM", "Phi3ForCausalLM"},
      {"Phi4MMForCausalLM", "Phi3ForCausalLM"},
      {"DeepseekForCausalLM", "DeepseekV2ForCausalLM"},
      {"DeepseekV32ForCausalLM", "DeepseekV3ForCausalLM"},
      {"BailingMoeV3ForCausalLM", "BailingMoeV2ForCausalLM"},
      {"Llama4ForConditionalGeneration", "LlamaForCausalLM"},
      {"ExaoneForCausalLM", "Exaone4ForCausalLM"},
      {"Exaone4_5ForConditionalGeneration", "Exaone4ForCausalLM"},
      {"OlmoForCausalLM", "Olmo3ForCausalLM"},
      {"HunYuanMoEV1ForCausalLM", "HunYuanDenseV1ForCausalLM"},
      {"GPTNeoXJapaneseForCausalLM", "GPTNeoXForCausalLM"},
      {"GPTJForCausalLM", "GPT2LMHeadModel"},
      {"Ernie4_5_VLMoeForConditionalGeneration", "Ernie4_5ForCausalLM"},
      {"BertForTokenClassification", "BertModel"},
      {"GraniteSpeechForConditionalGeneration", "GraniteForCausalLM"},
  };
  for (const auto& [name, nearest] : kPairs) EXPECT_EQ(NearestArchitecture(name), nearest) << name;
}

TEST(NearestArchitectureTest, RelativesWithOtherNamesAreInATable) {
  EXPECT_EQ(NearestArchitecture("JambaForCausalLM"), "GraniteMoeHybridForCausalLM");
  EXPECT_EQ(NearestArchitecture("FalconMambaForCausalLM"), "Mamba2ForCausalLM");
  EXPECT_EQ(NearestArchitecture("MPTForCausalLM"), "FalconForCausalLM");
  EXPECT_EQ(NearestArchitecture("AlbertModel"), "BertModel");
  EXPECT_EQ(NearestArchitecture("JinaEmbeddingsV3Model"), "JinaBertModel");
  EXPECT_EQ(NearestArchitecture("MiniCPMForCausalLM"), "LlamaForCausalLM");
  EXPECT_EQ(NearestArchitecture("QWenLMHeadModel"), "Qwen2ForCausalLM");
  EXPECT_EQ(NearestArchitecture("ChatGLMModel"), "GlmForCausalLM");
}

TEST(NearestArchitectureTest, NamesOfGgufFilesLeadToTheRegistryToo) {
  EXPECT_EQ(NearestArchitecture("mamba"), "Mamba2ForCausalLM");
  EXPECT_EQ(NearestArchitecture("phi2"), "Phi3ForCausalLM");
  EXPECT_EQ(NearestArchitecture("qwen3vl"), "Qwen3ForCausalLM");
  EXPECT_EQ(NearestArchitecture("deepseek"), "DeepseekV2ForCausalLM");
  EXPECT_EQ(NearestArchitecture("command-r"), "LlamaForCausalLM");
  EXPECT_EQ(NearestArchitecture("bailingmoe3"), "BailingMoeForCausalLM");
}

TEST(NearestArchitectureTest, NothingIsNearANameWithoutRelatives) {
  for (const char* name : {"", "X", "WhisperForConditionalGeneration", "T5ForConditionalGeneration", "mod", "123",
                           "\x1b[31m", "ForCausalLM", "Model"}) {
    EXPECT_EQ(NearestArchitecture(name), "") << name;
    EXPECT_EQ(NearestHint(name), "nearest that runs: a model of another family; vllmcli pull --list names some");
  }
}

TEST(NearestArchitectureTest, EverySuggestionIsInTheRegistry) {
  for (const GgufArchitecture& gguf : GgufArchitectures()) {
    const std::string_view nearest = NearestArchitecture(gguf.name);
    EXPECT_TRUE(IsKnownArchitecture(nearest)) << gguf.name << " " << nearest;
  }
  for (char first = 'a'; first <= 'z'; ++first) {
    for (char second = 'a'; second <= 'z'; ++second) {
      const std::string name{first, second};
      const std::string_view nearest = NearestArchitecture(name);
      EXPECT_TRUE(nearest.empty() || IsKnownArchitecture(nearest)) << name << " " << nearest;
    }
  }
}

TEST(NearestArchitectureTest, TheHintNamesTheFamilyAndAPublishedModel) {
  EXPECT_EQ(NearestHint("MambaForCausalLM"),
            "nearest that runs: Mamba2ForCausalLM (Mamba-2), such as mistralai/Mamba-Codestral-7B-v0.1");
  EXPECT_EQ(NearestHint("Qwen3ForTokenClassification"),
            "nearest that runs: Qwen3Model (Qwen3 without an output "
            "projection)");
}

}  // namespace
}  // namespace vllm
