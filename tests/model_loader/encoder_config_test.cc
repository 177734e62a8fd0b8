// Tests the fields of config.json of encoders: positions, and settings that are rejected.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/model_loader/load_hf_config.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::ExpectHfConfigError;
using testing_support::LoadHfConfig;

json Config(const std::string& architecture, const std::string& model_type, const json& fields = json::object()) {
  json config = {{"architectures", {architecture}},
                 {"model_type", model_type},
                 {"vocab_size", 100},
                 {"hidden_size", 64},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 8},
                 {"intermediate_size", 48},
                 {"max_position_embeddings", 50}};
  config.update(fields);
  return config;
}

TEST(EncoderConfigTest, PositionsBeginAfterThePaddingToken) {
  for (const auto& [type, offset] : {std::pair("bert", 0), {"roberta", 4}, {"mpnet", 2}, {"electra", 0}}) {
    json config = Config("X", type, {{"pad_token_id", 3}});
    if (std::string(type) == "electra") config["embedding_size"] = 64;
    const ModelConfig model = LoadHfConfig(config);
    EXPECT_EQ(model.position_offset, offset) << type;
    EXPECT_EQ(model.max_model_len, 50 - offset) << type;
    EXPECT_TRUE(model.is_encoder) << type;
  }
}

TEST(EncoderConfigTest, UnsupportedSettingsAreRejectedByName) {
  ExpectHfConfigError(Config("ElectraModel", "electra"), "embedding_size: must be the hidden_size");
  ExpectHfConfigError(Config("MPNetModel", "mpnet", {{"relative_attention_num_buckets", 64}}),
                      "relative_attention_num_buckets: not 32");
  ExpectHfConfigError(Config("MPNetModel", "mpnet", {{"max_position_embeddings", 2}}), "max_position_embeddings");
  ExpectHfConfigError(Config("BertModel", "bert", {{"position_embedding_type", "alibi"}}),
                      "only absolute is supported");
  const json jina = {{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}};
  EXPECT_NO_THROW(LoadHfConfig(Config("JinaBertModel", "bert", jina)));
  ExpectHfConfigError(Config("JinaBertModel", "bert"), "feed_forward_type: not geglu");
  ExpectHfConfigError(Config("JinaBertModel", "bert", {{"feed_forward_type", "geglu"}}), "only alibi is supported");
}

TEST(EncoderConfigTest, RepositoryOfItsCodeTellsTheJinaBertForCodeFromOthers) {
  const std::string code = "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel";
  const std::string other = "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel";
  json fields = {{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}};
  const auto has_qk_norm = [&](const char* name, const json& value) {
    json config = Config("JinaBertModel", "bert", fields);
    config[name] = value;
    return LoadHfConfig(config).use_qk_norm;
  };
  EXPECT_TRUE(has_qk_norm("auto_map", {{"AutoConfig", other}, {"AutoModel", code}}));
  EXPECT_TRUE(has_qk_norm("_name_or_path", "jinaai/jina-bert-v2-qk-post-norm"));
  EXPECT_FALSE(has_qk_norm("auto_map", {{"AutoModel", other}}));
  EXPECT_FALSE(has_qk_norm("auto_map", json::array({code})));
  EXPECT_FALSE(has_qk_norm("auto_map", {{"AutoModel", 3}}));
  EXPECT_FALSE(has_qk_norm("_name_or_path", other));
  EXPECT_FALSE(
      LoadHfConfig(Config("BertModel", "bert", {{"_name_or_path", "x/jina-bert-v2-qk-post-norm"}})).use_qk_norm);
}

// The fields of nomic-embed-text-v2-moe.
json NomicMoe(const json& changes = json::object()) {
  json config = {{"architectures", {"NomicBertModel"}},
                 {"model_type", "nomic_bert"},
                 {"vocab_size", 100},
                 {"n_embd", 64},
                 {"n_layer", 7},
                 {"n_head", 8},
                 {"n_inner", 48},
                 {"n_positions", 50},
                 {"layer_norm_epsilon", 1e-5},
                 {"activation_function", "gelu"},
                 {"qkv_proj_bias", true},
                 {"mlp_fc1_bias", true},
                 {"mlp_fc2_bias", true},
                 {"rotary_emb_base", 10000},
                 {"use_rms_norm", nullptr},
                 {"num_experts", 8},
                 {"moe_top_k", 2},
                 {"moe_every_n_layers", 2},
                 {"moe_normalize_expert_weights", false},
                 {"num_shared_experts", 0},
                 {"expert_choice_router", false},
                 {"ffn_div", 1},
                 {"type_vocab_size", 1}};
  config.update(changes);
  return config;
}

std::vector<size_t> MoeLayers(const ModelConfig& model) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].is_moe) layers.push_back(i);
  }
  return layers;
}

TEST(EncoderConfigTest, FieldsOfNomicBertWithExpertsAreRead) {
  const ModelConfig model = LoadHfConfig(NomicMoe());
  EXPECT_TRUE(model.is_encoder);
  EXPECT_EQ(model.num_experts, 8);
  EXPECT_EQ(model.num_experts_per_tok, 2);
  EXPECT_EQ(model.moe_intermediate_size, 48);
  EXPECT_FALSE(model.norm_topk_prob);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_EQ(model.hidden_act, "gelu");
  EXPECT_TRUE(model.attention_bias);
  EXPECT_TRUE(model.mlp_bias);
  EXPECT_EQ(model.rope_theta, 10000.0);
  EXPECT_EQ(model.rms_norm_eps, 1e-5);
  EXPECT_EQ(model.max_model_len, 50);
}

TEST(EncoderConfigTest, EveryNthLayerOfNomicBertHasExpertsFromTheSecondOn) {
  EXPECT_EQ(MoeLayers(LoadHfConfig(NomicMoe())), (std::vector<size_t>{1, 3, 5}));
  EXPECT_EQ(MoeLayers(LoadHfConfig(NomicMoe({{"moe_every_n_layers", 3}}))), (std::vector<size_t>{1, 4}));
  EXPECT_EQ(MoeLayers(LoadHfConfig(NomicMoe({{"moe_every_n_layers", 0}, {"num_experts", 0}}))), std::vector<size_t>{});
}

TEST(EncoderConfigTest, ActivationOfNomicBertDecidesWhetherItsMlpHasAGate) {
  const json dense = {{"moe_every_n_layers", 0}, {"num_experts", 0}};
  for (const auto& [name, hidden_act, is_gated] :
       {std::tuple("gelu", "gelu", false), {"geglu", "gelu", true}, {"swiglu", "silu", true}}) {
    json config = NomicMoe(dense);
    config["activation_function"] = name;
    EXPECT_EQ(LoadHfConfig(config).gated_mlp, is_gated) << name;
    EXPECT_EQ(LoadHfConfig(config).hidden_act, hidden_act) << name;
  }
  json config = NomicMoe(dense);
  config["activation_function"] = nullptr;
  EXPECT_TRUE(LoadHfConfig(config).gated_mlp);
  EXPECT_EQ(LoadHfConfig(config).hidden_act, "silu");
  // transformers writes no activation_function.
  EXPECT_TRUE(LoadHfConfig(Config("NomicBertModel", "nomic_bert")).gated_mlp);
  EXPECT_EQ(LoadHfConfig(Config("NomicBertModel", "nomic_bert")).hidden_act, "silu");
}

TEST(EncoderConfigTest, UnsupportedSettingsOfNomicBertAreRejectedByName) {
  const auto expect = [](const char* name, const json& value, const std::string& why) {
    ExpectHfConfigError(NomicMoe({{name, value}}), std::string(name) + ": " + why);
  };
  expect("activation_function", "glu", "not gelu, geglu or swiglu");
  expect("activation_function", "gelu_new", "not gelu, geglu or swiglu");
  expect("activation_function", "swiglu", "must be gelu with num_experts");
  expect("activation_function", 3, "");
  expect("mlp_fc2_bias", false, "must be mlp_fc1_bias");
  expect("prenorm", true, "norms before the blocks");
  expect("parallel_block", true, "parallel blocks");
  expect("causal", true, "causal attention");
  expect("use_rms_norm", true, "RMS norms");
  expect("rotary_emb_fraction", 0.5, "only full rotation");
  expect("rotary_emb_interleaved", true, "interleaved rotation");
  expect("rotary_emb_scale_base", 512, "scaled rotation");
  expect("rotary_scaling_factor", 2.0, "scaled rotation");
  expect("num_experts", 5000, "outside 0 to 4096");
  expect("num_experts", 1.5, "");
  expect("moe_top_k", 9, "outside 1 to 8");
  expect("moe_top_k", nullptr, "missing");
  expect("moe_every_n_layers", 0, "must be at least 2 with num_experts");
  expect("moe_every_n_layers", 1, "must be at least 2 with num_experts");
  expect("moe_every_n_layers", nullptr, "must be at least 2 with num_experts");
  expect("moe_normalize_expert_weights", true, "only false is supported");
  expect("moe_normalize_expert_weights", 2.0, "");
  expect("num_shared_experts", 1, "shared experts are not supported");
  expect("expert_choice_router", true, "only routers that choose experts for each token");
  expect("ffn_div", 2, "must be 1");
  ExpectHfConfigError(NomicMoe({{"num_experts", 0}}), "moe_every_n_layers: must be 0 without num_experts");
}

}  // namespace
}  // namespace vllm
