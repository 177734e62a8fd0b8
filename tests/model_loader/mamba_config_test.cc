// Tests the fields of config.json of models with Mamba-2 and of LFM2-MoE, and their defaults, which are those of
// transformers' config classes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/model_loader/load_hf_config.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::ExpectHfConfigError;
using testing_support::LoadHfConfig;

json Config(const std::string& model_type, const json& fields = json::object()) {
  json config = {{"architectures", {"X"}}, {"model_type", model_type}, {"vocab_size", 100}, {"hidden_size", 64}};
  if (model_type != "mamba2") {
    config.update({{"intermediate_size", 48}, {"num_attention_heads", 8}, {"head_dim", 8}});
  }
  if (model_type != "nemotron_h") config["num_hidden_layers"] = 3;
  config.update(fields);
  return config;
}

ModelConfig LoadText(const std::string& text) {
  TempDirectory directory;
  directory.Write("config.json", text);
  return LoadModelConfig(directory.path());
}

TEST(MambaConfigTest, Mamba2HasTheDefaultsOfTransformers) {
  const ModelConfig config = LoadHfConfig(Config("mamba2", {{"hidden_size", 4096}}));
  EXPECT_EQ(config.mamba_n_heads, 128);
  EXPECT_EQ(config.mamba_d_head, 64);
  EXPECT_EQ(config.mamba_n_groups, 8);
  EXPECT_EQ(config.mamba_d_state, 128);
  EXPECT_EQ(config.mamba_d_conv, 4);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.mamba_conv_bias);
  EXPECT_FALSE(config.mamba_proj_bias);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_EQ(config.num_attention_heads, 0);
  EXPECT_EQ(config.layers[2].mixer, LayerMixer::kMamba2);
  EXPECT_FALSE(config.layers[2].has_mlp);
}

TEST(MambaConfigTest, Mamba2HasNoLimitOfPositions) {
  EXPECT_EQ(LoadHfConfig(Config("mamba2", {{"num_heads", 2}, {"n_groups", 2}})).max_model_len, 1 << 20);
}

TEST(MambaConfigTest, InfinityIsNoLimitOfTheTimeStep) {
  std::string text = Config("mamba2", {{"num_heads", 2}, {"n_groups", 2}}).dump();
  text.back() = ',';
  EXPECT_EQ(LoadText(text + R"("time_step_limit": [0.0, Infinity], "x": "\"Infinity"})").mamba_n_heads, 2);
  ExpectHfConfigError(Config("mamba2", {{"num_heads", 2}, {"n_groups", 2}, {"time_step_limit", {0.0, 0.1}}}),
                      "time_step_limit: only no limit");
  ExpectHfConfigError(Config("mamba2", {{"num_heads", 2}, {"n_groups", 2}, {"time_step_limit", {0.1, nullptr}}}),
                      "time_step_limit: only no");
}

TEST(MambaConfigTest, Mamba2WithUnequalSizesIsRejected) {
  ExpectHfConfigError(Config("mamba2", {{"num_heads", 4}, {"n_groups", 2}}),
                      "head_dim: expand * hidden_size / num_heads is 32 (64)");
  ExpectHfConfigError(Config("mamba2", {{"num_heads", 3}, {"n_groups", 1}}),
                      "num_heads: does not divide expand * hidden_size 128 (3)");
  ExpectHfConfigError(Config("mamba2", {{"num_heads", 2}, {"n_groups", 3}}), "n_groups: ");
}

TEST(MambaConfigTest, FalconH1HasTheDefaultsOfTransformers) {
  const ModelConfig config = LoadHfConfig(Config("falcon_h1"));
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.max_position_embeddings, 8192);
  EXPECT_EQ(config.mamba_n_heads, 128);
  EXPECT_EQ(config.mamba_d_head, 8);
  EXPECT_EQ(config.mamba_d_state, 256);
  EXPECT_FALSE(config.mamba_rms_norm);
  EXPECT_TRUE(config.mamba_norm_before_gate);
  EXPECT_FALSE(config.mamba_out_proj_bias);
  EXPECT_EQ(config.falcon_h1.ssm[4], 1.0);
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kAttentionAndMamba2);
  EXPECT_TRUE(config.layers[0].HasAttention());
  EXPECT_EQ(config.RecurrentStateFloats(config.layers[0]), 3 * (1024 + 512) + 1024 * 256);
}

TEST(MambaConfigTest, FalconH1ThatCannotRunIsRejected) {
  ExpectHfConfigError(Config("falcon_h1", {{"ssm_multipliers", {1.0, 2.0}}}),
                      "ssm_multipliers: not a list of 5 numbers");
  ExpectHfConfigError(Config("falcon_h1", {{"mlp_multipliers", {1.0, -2.0}}}), "mlp_multipliers: ");
  ExpectHfConfigError(Config("falcon_h1", {{"mamba_d_head", 16}}), "mamba_d_head: mamba_d_ssm / mamba_n_heads is 8");
  ExpectHfConfigError(Config("falcon_h1", {{"attn_layer_indices", {1}}}), "attn_layer_indices: ");
  ExpectHfConfigError(Config("falcon_h1", {{"mamba_use_mlp", false}}), "mamba_use_mlp: ");
}

TEST(MambaConfigTest, NemotronHHasTheDefaultsOfTransformers) {
  json fields = Config("nemotron_h", {{"hybrid_override_pattern", "M-*E"}});
  fields.erase("head_dim");
  const ModelConfig config = LoadHfConfig(fields);
  EXPECT_EQ(config.num_hidden_layers, 4);
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.hidden_act, "relu2");
  EXPECT_EQ(config.max_position_embeddings, 4096);
  EXPECT_EQ(config.mamba_n_heads, 128);
  EXPECT_EQ(config.mamba_d_head, 64);
  EXPECT_EQ(config.mamba_n_groups, 8);
  EXPECT_EQ(config.mamba_d_state, 128);
  EXPECT_EQ(config.mamba_min_dt, 1e-3);
  EXPECT_EQ(config.num_experts, 8);
  EXPECT_EQ(config.num_experts_per_tok, 2);
  EXPECT_EQ(config.moe_intermediate_size, 7688);
  EXPECT_EQ(config.shared_expert_intermediate_size, 7688);
  EXPECT_EQ(config.moe_latent_size, 0);
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kMamba2);
  EXPECT_EQ(config.layers[1].mixer, LayerMixer::kNone);
  EXPECT_EQ(config.layers[2].mixer, LayerMixer::kAttention);
  EXPECT_FALSE(config.layers[2].has_mlp);
  EXPECT_FALSE(config.layers[2].use_rope);
  EXPECT_TRUE(config.layers[3].is_moe);
}

TEST(MambaConfigTest, NemotronHReadsOldAndNewLayerTypes) {
  const json types = {"mamba", "linear_attention", "attention", "full_attention", "mlp", "moe"};
  const ModelConfig config = LoadHfConfig(Config("nemotron_h", {{"layers_block_type", types}}));
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kMamba2);
  EXPECT_EQ(config.layers[1].mixer, LayerMixer::kMamba2);
  EXPECT_EQ(config.layers[2].mixer, LayerMixer::kAttention);
  EXPECT_EQ(config.layers[3].mixer, LayerMixer::kAttention);
  EXPECT_TRUE(config.layers[4].has_mlp);
  EXPECT_TRUE(config.layers[5].is_moe);
}

TEST(MambaConfigTest, NemotronHThatCannotRunIsRejected) {
  const auto config = [](const json& fields) {
    json whole = Config("nemotron_h", {{"hybrid_override_pattern", "M*E"}});
    whole.update(fields);
    return whole;
  };
  ExpectHfConfigError(Config("nemotron_h"), "hybrid_override_pattern: missing or empty");
  ExpectHfConfigError(config({{"hybrid_override_pattern", "MXE"}}), "hybrid_override_pattern: unknown layer type (MXE");
  ExpectHfConfigError(config({{"layers_block_type", {"rnn"}}}), "layers_block_type: unknown layer type (rnn");
  ExpectHfConfigError(config({{"attention_bias", true}}), "attention_bias: ");
  ExpectHfConfigError(config({{"attention_head_dim", 16}}), "attention_head_dim: not head_dim 8 (16)");
  ExpectHfConfigError(config({{"mamba_hidden_act", "gelu"}}), "mamba_hidden_act: only silu");
  ExpectHfConfigError(config({{"n_shared_experts", 2}}), "n_shared_experts: only 1");
}

TEST(MambaConfigTest, Lfm2MoeHasTheDefaultsOfTransformers) {
  const json types = {"conv", "full_attention", "conv"};
  const ModelConfig config = LoadHfConfig(Config("lfm2_moe", {{"layer_types", types}}));
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.max_position_embeddings, 128000);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.intermediate_size, 48);
  EXPECT_EQ(config.moe_intermediate_size, 1792);
  EXPECT_EQ(config.num_experts, 32);
  EXPECT_EQ(config.num_experts_per_tok, 4);
  EXPECT_EQ(config.conv_l_cache, 3);
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_TRUE(config.use_expert_bias);
  EXPECT_FALSE(config.layers[1].is_moe);
  EXPECT_TRUE(config.layers[2].is_moe);
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kShortConv);
}

}  // namespace
}  // namespace vllm
