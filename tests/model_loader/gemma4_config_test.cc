// Tests how the fields of config.json that only Gemma 4 has are read and checked.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/model_loader/load_hf_config.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::LoadHfConfig;

// A model with the layers s f s f s f, where s is sliding and f is full.
json Config(const json& fields = json::object()) {
  json config = {{"architectures", {"Gemma4ForCausalLM"}},
                 {"model_type", "gemma4_text"},
                 {"vocab_size", 100},
                 {"hidden_size", 32},
                 {"intermediate_size", 48},
                 {"num_hidden_layers", 6},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"head_dim", 8},
                 {"global_head_dim", 16},
                 {"sliding_window", 7},
                 {"dtype", "bfloat16"},
                 {"max_position_embeddings", 64}};
  for (int i = 0; i < 3; ++i) {
    config["layer_types"].push_back("sliding_attention");
    config["layer_types"].push_back("full_attention");
  }
  config.update(fields);
  return config;
}

void ExpectError(const json& fields, const std::string& text) {
  testing_support::ExpectHfConfigError(Config(fields), text);
}

std::vector<int64_t> HeadDims(const ModelConfig& config) {
  std::vector<int64_t> dims;
  for (const LayerConfig& layer : config.layers) dims.push_back(config.HeadDim(layer));
  return dims;
}

std::vector<int64_t> KVHeads(const ModelConfig& config) {
  std::vector<int64_t> heads;
  for (const LayerConfig& layer : config.layers) heads.push_back(config.NumKVHeads(layer));
  return heads;
}

TEST(Gemma4ConfigTest, FullAttentionLayersHaveTheirOwnHeads) {
  const ModelConfig config = LoadHfConfig(Config({{"attention_k_eq_v", true}, {"num_global_key_value_heads", 1}}));
  EXPECT_EQ(HeadDims(config), (std::vector<int64_t>{8, 16, 8, 16, 8, 16}));
  EXPECT_EQ(KVHeads(config), (std::vector<int64_t>{2, 1, 2, 1, 2, 1}));
  EXPECT_FALSE(config.layers[0].values_are_keys);
  EXPECT_TRUE(config.layers[1].values_are_keys);
}

TEST(Gemma4ConfigTest, TheNumberOfGlobalKVHeadsCountsOnlyIfValuesAreKeys) {
  EXPECT_EQ(KVHeads(LoadHfConfig(Config({{"num_global_key_value_heads", 1}}))), std::vector<int64_t>(6, 2));
}

TEST(Gemma4ConfigTest, PerLayerConfigReplacesTheGlobalFields) {
  const json full = {{"head_dim", 12}, {"num_key_value_heads", 4}};
  const ModelConfig config = LoadHfConfig(Config({{"per_layer_config", {{"01", full}, {"3", full}, {"5", full}}}}));
  EXPECT_EQ(HeadDims(config), (std::vector<int64_t>{8, 12, 8, 12, 8, 12}));
  EXPECT_EQ(KVHeads(config), (std::vector<int64_t>{2, 4, 2, 4, 2, 4}));
  EXPECT_EQ(HeadDims(LoadHfConfig(Config({{"per_layer_config", json::object()}}))), std::vector<int64_t>(6, 8));
}

TEST(Gemma4ConfigTest, UnsupportedPerLayerConfigsAreRejectedByName) {
  const json full = {{"head_dim", 12}};
  const auto reject = [](const json& per_layer, const std::string& text) {
    ExpectError({{"per_layer_config", per_layer}}, "per_layer_config." + text);
  };
  reject({{"6", full}}, "6: must be the index of a layer");
  reject({{"-1", full}}, "-1: must be the index of a layer");
  reject({{"full_attention", full}}, "full_attention: must be the index of a layer");
  reject({{"1", {{"sliding_window", 3}}}}, "1.sliding_window: settings of single layers");
  reject({{"1", {{"head_dim", 0}}}}, "1.head_dim: outside");
  reject({{"1", full}}, "3: heads that differ between layers of one type");
  reject({{"0", full}, {"2", full}, {"4", full}}, "0: heads that differ between layers of one type");
  ExpectError({{"per_layer_config", {{"1", 5}}}}, "per_layer_config.1");
}

TEST(Gemma4ConfigTest, LastLayersShareKAndVOfTheLastLayerOfTheirType) {
  const ModelConfig config = LoadHfConfig(Config({{"num_kv_shared_layers", 3}, {"use_double_wide_mlp", true}}));
  std::vector<int64_t> sources, widths;
  for (const LayerConfig& layer : config.layers) {
    sources.push_back(layer.kv_source_layer);
    widths.push_back(config.IntermediateSize(layer));
  }
  EXPECT_EQ(sources, (std::vector<int64_t>{-1, -1, -1, 1, 2, 1}));
  EXPECT_EQ(widths, (std::vector<int64_t>{48, 48, 48, 96, 96, 96}));
}

TEST(Gemma4ConfigTest, EverySharedLayerNeedsASourceOfItsType) {
  ExpectError({{"num_kv_shared_layers", 5}}, "num_kv_shared_layers: a shared layer has no layer of its type");
  ExpectError({{"num_kv_shared_layers", 7}}, "num_kv_shared_layers: outside 0 to 6");
}

TEST(Gemma4ConfigTest, TheLastLayerHasFullAttention) {
  const ModelConfig config =
      LoadHfConfig(Config({{"layer_types", json(std::vector<std::string>(6, "sliding_attention"))}}));
  EXPECT_EQ(config.layers[4].sliding_window, 7);
  EXPECT_EQ(config.layers[5].sliding_window, 0);
  EXPECT_FALSE(config.layers[5].use_local_rope);
}

TEST(Gemma4ConfigTest, RotaryParametersAreReadForEachLayerType) {
  const json rope = {
      {"full_attention",
       {{"rope_type", "proportional"}, {"rope_theta", 5e5}, {"partial_rotary_factor", 0.5}, {"factor", 8.0}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 500.0}}}};
  const ModelConfig config = LoadHfConfig(Config({{"rope_parameters", rope}}));
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.rope_scaling.partial_rotary_factor, 0.5);
  EXPECT_EQ(config.rope_scaling.factor, 8.0);
  EXPECT_EQ(config.rope_local_theta, 500.0);
  EXPECT_EQ(config.max_model_len, 64);
}

TEST(Gemma4ConfigTest, UnsupportedRotaryParametersAreRejectedByName) {
  const json sliding = {{"rope_theta", 500.0}};
  const auto reject = [&](const json& full, const std::string& text) {
    ExpectError({{"rope_parameters", {{"full_attention", full}, {"sliding_attention", sliding}}}}, text);
  };
  reject({{"rope_theta", 5e5}, {"rope_type", "yarn"}}, "rope_parameters.full_attention.rope_type: unsupported");
  reject({{"rope_theta", 5e5}, {"partial_rotary_factor", 0.5}}, "full_attention.partial_rotary_factor: is only");
  reject({{"rope_type", "default"}}, "full_attention.rope_theta: missing");
  ExpectError({{"rope_parameters", {{"rope_theta", 1e4}}}}, "rope_parameters.full_attention: missing");
  ExpectError({{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}},
              "rope_parameters.sliding_attention: missing");
  ExpectError({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}}, "rope_scaling: not supported");
}

TEST(Gemma4ConfigTest, UnsupportedSwitchesAreRejectedByName) {
  ExpectError({{"use_bidirectional_attention", "all"}}, "use_bidirectional_attention: only causal attention");
  EXPECT_EQ(LoadHfConfig(Config({{"use_bidirectional_attention", "vision"}})).architecture, "Gemma4ForCausalLM");
  ExpectError({{"sliding_window", nullptr}}, "sliding_window: missing");
  ExpectError({{"layer_types", json(std::vector<std::string>(7, "full_attention"))}},
              "layer_types: must have num_hidden_layers 6 entries");
  ExpectError({{"vocab_size_per_layer_input", 99}}, "vocab_size_per_layer_input: below vocab_size 100");
  ExpectError({{"global_head_dim", 7}}, "global_head_dim: head dimension is not even");
  ExpectError({{"attention_k_eq_v", true}, {"num_global_key_value_heads", 3}},
              "num_global_key_value_heads: number of KV heads does not divide");
  ExpectError({{"enable_moe_block", true}}, "num_experts: missing");
  ExpectError({{"enable_moe_block", true}, {"num_experts", 4}, {"top_k_experts", 5}, {"moe_intermediate_size", 8}},
              "top_k_experts: outside 1 to 4");
}

TEST(Gemma4ConfigTest, ModelsWithoutPerLayerInputsNeedNoTable) {
  const ModelConfig config =
      LoadHfConfig(Config({{"hidden_size_per_layer_input", 0}, {"vocab_size_per_layer_input", 1}}));
  EXPECT_EQ(config.hidden_size_per_layer_input, 0);
}

}  // namespace
}  // namespace vllm
