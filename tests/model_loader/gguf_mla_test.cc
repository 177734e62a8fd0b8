// Tests how the metadata of deepseek2 GGUF files is read, and which variants are rejected.
#include "engine/model_loader/gguf/mla.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Sizes = std::map<std::string, uint32_t>;

const Sizes kSizes = {{"context_length", 64},
                      {"embedding_length", 32},
                      {"block_count", 3},
                      {"feed_forward_length", 48},
                      {"attention.head_count", 4},
                      {"attention.head_count_kv", 1},
                      {"vocab_size", 10},
                      {"attention.kv_lora_rank", 512},
                      {"attention.key_length", 576},
                      {"attention.value_length", 512},
                      {"attention.key_length_mla", 192},
                      {"attention.value_length_mla", 128},
                      {"rope.dimension_count", 64},
                      {"expert_count", 8},
                      {"expert_used_count", 2},
                      {"expert_shared_count", 2},
                      {"expert_feed_forward_length", 24},
                      {"leading_dense_block_count", 1}};

class GgufMLATest : public testing::Test {
 protected:
  static GgufBuilder Build(const Sizes& changed = {}) {
    GgufBuilder file;
    file.String("general.architecture", "deepseek2");
    Sizes sizes = kSizes;
    for (const auto& [name, size] : changed) sizes[name] = size;
    for (const auto& [name, size] : sizes) {
      if (size > 0) file.Int("deepseek2." + name, size);
    }
    file.Float("deepseek2.attention.layer_norm_rms_epsilon", 1e-5F);
    return file;
  }
  ModelConfig Load(const GgufBuilder& file) { return LoadGgufConfig(directory_.Write("m.gguf", file.Build())); }
  std::string ErrorOf(const GgufBuilder& file) {
    return MessageOf<ModelError>([&] { Load(file); });
  }

  TempDirectory directory_;
};

TEST_F(GgufMLATest, SizesAreRead) {
  const ModelConfig config = Load(Build({{"attention.q_lora_rank", 24}}));
  EXPECT_EQ(config.architecture, "DeepseekV2ForCausalLM");
  EXPECT_EQ(config.num_key_value_heads, 1);
  EXPECT_EQ(config.kv_lora_rank, 512);
  EXPECT_EQ(config.q_lora_rank, 24);
  EXPECT_EQ(config.head_dim, 192);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.qk_nope_head_dim, 128);
  EXPECT_EQ(config.v_head_dim, 128);
  EXPECT_EQ(config.shared_expert_intermediate_size, 48);
  EXPECT_FALSE(config.norm_topk_prob);
  EXPECT_FALSE(config.layers[0].is_moe);
  EXPECT_TRUE(config.layers[1].is_moe);
}

TEST_F(GgufMLATest, FilesFromBeforeTheSplitHaveTheSizesOfTheHeads) {
  const ModelConfig config = Load(Build({{"attention.key_length", 192},
                                         {"attention.value_length", 128},
                                         {"attention.key_length_mla", 0},
                                         {"attention.value_length_mla", 0},
                                         {"attention.head_count_kv", 4}}));
  EXPECT_EQ(config.num_key_value_heads, 1);
  EXPECT_EQ(config.q_lora_rank, 0);
  EXPECT_EQ(config.head_dim, 192);
  EXPECT_EQ(config.v_head_dim, 128);
}

TEST_F(GgufMLATest, SigmoidScoresAreThoseOfDeepseekV3) {
  const ModelConfig config = Load(Build({{"expert_gating_func", 2}, {"expert_group_count", 4}}));
  EXPECT_EQ(config.architecture, "DeepseekV3ForCausalLM");
  EXPECT_EQ(config.model_type, "deepseek_v3");
  EXPECT_EQ(config.n_group, 4);
}

TEST_F(GgufMLATest, TheMultiplierOfYarnIsATenthOfMscaleAllDim) {
  GgufBuilder file = Build();
  file.String("deepseek2.rope.scaling.type", "yarn");
  file.Float("deepseek2.rope.scaling.factor", 40.0F);
  file.Float("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707F);
  const ModelConfig config = Load(file);
  EXPECT_NEAR(*config.rope_scaling.mscale_all_dim, 0.707, 1e-6);
  EXPECT_EQ(config.rope_scaling.mscale, config.rope_scaling.mscale_all_dim);
}

TEST_F(GgufMLATest, UnsupportedVariantsAreRejectedByName) {
  EXPECT_NE(
      ErrorOf(Build({{"rope.dimension_count", 192}})).find("rope.dimension_count: not below the size of the keys"),
      std::string::npos);
  EXPECT_NE(ErrorOf(Build({{"attention.kv_lora_rank", 0}})).find("attention.kv_lora_rank: missing"), std::string::npos);
  EXPECT_NE(ErrorOf(Build({{"expert_gating_func", 3}})).find("expert_gating_func: only softmax (1) and sigmoid (2)"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Build({{"expert_count", 0}})).find("expert_count: models without experts"), std::string::npos);
  GgufBuilder normalized = Build();
  normalized.Bool("deepseek2.expert_weights_norm", true);
  EXPECT_TRUE(Load(normalized).norm_topk_prob);
  normalized.Float("deepseek2.expert_weights_scale", 16.0F);
  EXPECT_NE(
      ErrorOf(normalized).find("expert_weights_norm: true is supported with softmax only if expert_weights_scale"),
      std::string::npos);
  GgufBuilder linear = Build();
  linear.String("deepseek2.rope.scaling.type", "linear");
  linear.Float("deepseek2.rope.scaling.factor", 2.0F);
  EXPECT_NE(ErrorOf(linear).find("rope.scaling.type: only none and yarn"), std::string::npos);
}

}  // namespace
}  // namespace vllm
