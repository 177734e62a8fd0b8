// Tests how the configs of Ling-lite and Ling 2.0 are read, and which variants are rejected. The expected values are
// those of Inclusion AI's config classes, and the fields those of the published files.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/model_loader/load_hf_config.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::ExpectHfConfigError;
using testing_support::LoadHfConfig;

json LingLite(const json& fields = json::object()) {
  json config = {{"architectures", {"BailingMoeForCausalLM"}},
                 {"model_type", "bailing_moe"},
                 {"vocab_size", 126464},
                 {"hidden_size", 2048},
                 {"intermediate_size", 1408},
                 {"moe_intermediate_size", 1408},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", 16},
                 {"num_key_value_heads", 4},
                 {"max_position_embeddings", 32768},
                 {"num_experts", 64},
                 {"num_shared_experts", 2},
                 {"num_experts_per_tok", 6},
                 {"rope_theta", 600000},
                 {"rope_scaling", nullptr},
                 {"use_bias", false},
                 {"norm_head", false},
                 {"norm_softmax", false}};
  config.update(fields);
  return config;
}

// Ling-mini-2.0 has the model_type of the first Ling.
json LingMini(const json& fields = json::object()) {
  json config = {{"architectures", {"BailingMoeV2ForCausalLM"}},
                 {"model_type", "bailing_moe"},
                 {"vocab_size", 157184},
                 {"hidden_size", 2048},
                 {"intermediate_size", 5120},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", 16},
                 {"partial_rotary_factor", 0.5},
                 {"moe_shared_expert_intermediate_size", 512},
                 {"routed_scaling_factor", 2.5},
                 {"score_function", "sigmoid"}};
  config.update(fields);
  return config;
}

TEST(BailingMoeConfigTest, LingLiteChoosesExpertsInEveryLayer) {
  const ModelConfig config = LoadHfConfig(LingLite());
  EXPECT_EQ(config.model_type, "bailing_moe");
  EXPECT_EQ(config.num_experts, 64);
  EXPECT_EQ(config.shared_expert_intermediate_size, 2816);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_FALSE(config.use_qk_norm);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_FALSE(config.attention_out_bias);
  EXPECT_TRUE(config.layers[0].is_moe);
}

TEST(BailingMoeConfigTest, TheOutputProjectionOfAttentionHasABiasByDefault) {
  json config = LingLite();
  config.erase("use_bias");
  EXPECT_TRUE(LoadHfConfig(config).attention_out_bias);
}

TEST(BailingMoeConfigTest, Ling2HasTheDefaultsOfItsConfigClass) {
  const ModelConfig config = LoadHfConfig(LingMini());
  EXPECT_EQ(config.model_type, "bailing_moe_v2");
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.rope_theta, 6e5);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.num_experts, 256);
  EXPECT_EQ(config.num_experts_per_tok, 8);
  EXPECT_EQ(config.n_group, 8);
  EXPECT_EQ(config.topk_group, 4);
  EXPECT_EQ(config.moe_intermediate_size, 512);
  EXPECT_EQ(config.shared_expert_intermediate_size, 512);
  EXPECT_EQ(config.routed_scaling_factor, 2.5);
  EXPECT_TRUE(config.use_qk_norm);
  EXPECT_FALSE(config.layers[0].is_moe);
  EXPECT_TRUE(config.layers[1].is_moe);
}

TEST(BailingMoeConfigTest, UnsupportedSettingsAreRejectedByName) {
  ExpectHfConfigError(LingLite({{"norm_head", true}}), "norm_head: only false is supported");
  ExpectHfConfigError(LingLite({{"num_experts_per_tok", 65}}), "num_experts_per_tok: outside 1 to 64 (65)");
  ExpectHfConfigError(LingLite({{"num_key_value_heads", 0}}), "num_key_value_heads: ");
  ExpectHfConfigError(LingLite({{"partial_rotary_factor", 0.5}}),
                      "partial_rotary_factor: partial rotation is not supported");
  ExpectHfConfigError(LingMini({{"score_function", "softmax"}}), "score_function: only sigmoid is supported");
  ExpectHfConfigError(LingMini({{"norm_topk_prob", false}}), "norm_topk_prob: only true is supported");
  ExpectHfConfigError(LingMini({{"moe_shared_expert_intermediate_size", 400}}),
                      "moe_shared_expert_intermediate_size: not moe_intermediate_size 512");
  ExpectHfConfigError(LingMini({{"n_group", 7}}), "n_group: does not divide 256 experts");
  ExpectHfConfigError(LingMini({{"num_experts_per_tok", 200}}), "num_experts_per_tok: more than the 128 experts");
}

GgufBuilder File(const std::string& architecture) {
  GgufBuilder file;
  const std::string prefix = architecture + ".";
  file.String("general.architecture", architecture).Float(prefix + "attention.layer_norm_rms_epsilon", 1e-6F);
  file.Int(prefix + "context_length", 64).Int(prefix + "embedding_length", 32).Int(prefix + "block_count", 3);
  file.Int(prefix + "attention.head_count", 4).Int(prefix + "feed_forward_length", 48).Int(prefix + "vocab_size", 10);
  file.Int(prefix + "expert_count", 8).Int(prefix + "expert_used_count", 2).Int(prefix + "expert_shared_count", 2);
  file.Int(prefix + "expert_feed_forward_length", 24).Int(prefix + "leading_dense_block_count", 1);
  file.Bool(prefix + "expert_weights_norm", true);
  return file;
}

ModelConfig LoadGguf(const GgufBuilder& file) {
  TempDirectory directory;
  return LoadGgufConfig(directory.Write("m.gguf", file.Build()));
}

TEST(BailingMoeConfigTest, GgufFilesOfLingLiteScoreExpertsBySoftmax) {
  const ModelConfig config = LoadGguf(File("bailingmoe"));
  EXPECT_EQ(config.architecture, "BailingMoeForCausalLM");
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_EQ(config.shared_expert_intermediate_size, 48);
  EXPECT_FALSE(config.layers[0].is_moe);
  EXPECT_TRUE(config.layers[1].is_moe);
  EXPECT_NE(MessageOf<ModelError>([] {
              LoadGguf(File("bailingmoe").Int("bailingmoe.expert_gating_func", 2));
            }).find("bailingmoe.expert_gating_func: only softmax (1) is supported"),
            std::string::npos);
}

TEST(BailingMoeConfigTest, GgufFilesOfLing2ScoreExpertsBySigmoid) {
  GgufBuilder file = File("bailingmoe2");
  file.Int("bailingmoe2.expert_group_count", 4).Int("bailingmoe2.expert_group_used_count", 2);
  file.Float("bailingmoe2.expert_weights_scale", 2.5F).Int("bailingmoe2.expert_shared_feed_forward_length", 24);
  const ModelConfig config = LoadGguf(file);
  EXPECT_EQ(config.model_type, "bailing_moe_v2");
  EXPECT_EQ(config.n_group, 4);
  EXPECT_EQ(config.topk_group, 2);
  EXPECT_EQ(config.routed_scaling_factor, 2.5);
  EXPECT_EQ(config.shared_expert_intermediate_size, 48);
  EXPECT_NE(MessageOf<ModelError>([] {
              LoadGguf(File("bailingmoe2").Int("bailingmoe2.expert_gating_func", 1));
            }).find("bailingmoe2.expert_gating_func: only sigmoid (2) is supported"),
            std::string::npos);
}

}  // namespace
}  // namespace vllm
