// Tests how config.json of models with multi-head latent attention is read, and which variants are rejected.
#include "engine/model_loader/hf/mla_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/model_loader/load_hf_config.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::LoadHfConfig;

json Config(const std::string& model_type, const json& fields = json::object()) {
  json config = {{"architectures", {"X"}},   {"model_type", model_type}, {"vocab_size", 100},
                 {"hidden_size", 32},        {"intermediate_size", 48},  {"num_hidden_layers", 5},
                 {"num_attention_heads", 4}, {"dtype", "bfloat16"},      {"num_experts_per_tok", 6}};
  config.update(fields);
  return config;
}

// Returns the message after the directory's name.
std::string ErrorOf(const json& config) {
  const std::string message = testing_support::HfConfigError(config);
  const size_t end = message.find(": ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

TEST(MLAConfigTest, DeepseekV2HasTheDefaultsOfTransformers) {
  const ModelConfig config = LoadHfConfig(Config("deepseek_v2"));
  EXPECT_EQ(config.num_key_value_heads, 1);
  EXPECT_EQ(config.head_dim, 192);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.q_lora_rank, 1536);
  EXPECT_EQ(config.kv_lora_rank, 512);
  EXPECT_EQ(config.v_head_dim, 128);
  EXPECT_EQ(config.CachedHeadDim(config.layers[0]), 576);
  EXPECT_EQ(config.CachedValueDim(), 512);
  EXPECT_EQ(config.num_experts, 64);
  EXPECT_EQ(config.moe_intermediate_size, 1407);
  EXPECT_EQ(config.shared_expert_intermediate_size, 2 * 1407);
  EXPECT_EQ(config.n_group, 1);
  EXPECT_FALSE(config.norm_topk_prob);
  EXPECT_TRUE(config.layers[0].is_moe);
}

TEST(MLAConfigTest, DeepseekV3HasTheDefaultsOfTransformers) {
  const ModelConfig config = LoadHfConfig(Config("deepseek_v3"));
  EXPECT_EQ(config.num_experts, 256);
  EXPECT_EQ(config.n_group, 8);
  EXPECT_EQ(config.topk_group, 4);
  EXPECT_EQ(config.routed_scaling_factor, 2.5);
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_TRUE(config.rope_interleave);
  EXPECT_FALSE(config.layers[2].is_moe);
  EXPECT_TRUE(config.layers[3].is_moe);
}

TEST(MLAConfigTest, GlmFlashHasTheDefaultsOfTransformers) {
  const ModelConfig config = LoadHfConfig(Config("glm4_moe_lite"));
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.v_head_dim, 256);
  EXPECT_EQ(config.q_lora_rank, 768);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.routed_scaling_factor, 1.8);
  EXPECT_FALSE(config.layers[0].is_moe);
  EXPECT_TRUE(config.layers[1].is_moe);
}

TEST(MLAConfigTest, NullMeansThatQueriesAreNotCompressed) {
  EXPECT_EQ(LoadHfConfig(Config("deepseek_v2", {{"q_lora_rank", nullptr}})).q_lora_rank, 0);
}

TEST(MLAConfigTest, GroupsOfDeepseekV2CountOnlyIfTheMethodUsesThem) {
  const json groups = {{"n_group", 8}, {"topk_group", 3}, {"topk_method", "greedy"}};
  EXPECT_EQ(LoadHfConfig(Config("deepseek_v2", groups)).n_group, 1);
  json limited = groups;
  limited["topk_method"] = "group_limited_greedy";
  EXPECT_EQ(LoadHfConfig(Config("deepseek_v2", limited)).n_group, 8);
  EXPECT_EQ(LoadHfConfig(Config("deepseek_v2", limited)).topk_group, 3);
  EXPECT_FALSE(LoadHfConfig(Config("deepseek_v2", limited)).norm_topk_prob);
  EXPECT_TRUE(LoadHfConfig(Config("deepseek_v2", {{"norm_topk_prob", true}})).norm_topk_prob);
}

TEST(MLAConfigTest, MlpLayerTypesReplaceTheNumberOfDenseLayers) {
  const ModelConfig config =
      LoadHfConfig(Config("glm4_moe_lite", {{"first_k_dense_replace", 1},
                                            {"mlp_layer_types", {"sparse", "dense", "sparse", "dense", "dense"}}}));
  EXPECT_TRUE(config.layers[0].is_moe);
  EXPECT_FALSE(config.layers[1].is_moe);
  EXPECT_TRUE(config.layers[2].is_moe);
  EXPECT_NE(ErrorOf(Config("glm4_moe_lite", {{"mlp_layer_types", {"dense"}}})).find("fewer entries"),
            std::string::npos);
  const json unknown = {{"mlp_layer_types", {"dense", "dense", "moe", "dense", "dense"}}};
  EXPECT_EQ(ErrorOf(Config("glm4_moe_lite", unknown)),
            "mlp_layer_types: unknown layer type (moe; known: dense, sparse)");
}

TEST(MLAConfigTest, UnsupportedVariantsAreRejectedByName) {
  const auto expect_error = [](const char* model_type, const json& fields, const std::string& text) {
    EXPECT_EQ(ErrorOf(Config(model_type, fields)).substr(0, text.size()), text);
  };
  expect_error("deepseek_v2", {{"norm_topk_prob", true}, {"routed_scaling_factor", 16.0}},
               "norm_topk_prob: true is supported only with a routed_scaling_factor of 1");
  expect_error("deepseek_v2", {{"topk_method", "noaux_tc"}}, "topk_method: only greedy and group_limited_greedy");
  expect_error("deepseek_v2", {{"scoring_func", "sigmoid"}}, "scoring_func: only softmax is supported");
  expect_error("deepseek_v2", {{"moe_layer_freq", 2}}, "moe_layer_freq: only 1 is supported");
  expect_error("deepseek_v2", {{"num_key_value_heads", 2}}, "num_key_value_heads: not num_attention_heads 4");
  expect_error("deepseek_v2", {{"qk_rope_head_dim", 7}}, "qk_rope_head_dim: not even");
  expect_error("deepseek_v2", {{"kv_lora_rank", 0}}, "kv_lora_rank: ");
  expect_error("deepseek_v3", {{"topk_method", "greedy"}}, "topk_method: only noaux_tc is supported");
  expect_error("deepseek_v3", {{"scoring_func", "softmax"}}, "scoring_func: only sigmoid is supported");
  expect_error("glm4_moe_lite", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor: partial rotation is not");
  expect_error("deepseek_v3", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}},
               "rope_scaling.type: only default and yarn are supported");
}

}  // namespace
}  // namespace vllm
