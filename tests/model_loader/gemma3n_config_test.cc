// Tests how the fields of config.json that only Gemma 3n has are read and checked.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/model_loader/load_hf_config.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::LoadHfConfig;

// A model with the layers s f s f, where s is sliding and f is full.
json Config(const json& fields = json::object()) {
  json config = {{"architectures", {"Gemma3nForCausalLM"}},
                 {"model_type", "gemma3n_text"},
                 {"vocab_size", 100},
                 {"hidden_size", 32},
                 {"intermediate_size", {48, 40, 32, 24}},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"num_kv_shared_layers", 2},
                 {"sliding_window", 7},
                 {"dtype", "bfloat16"},
                 {"max_position_embeddings", 64},
                 {"activation_sparsity_pattern", {0.5, 0, 0.95, 0.0}},
                 {"layer_types", {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}}};
  config.update(fields);
  return config;
}

void ExpectError(const json& fields, const std::string& text) {
  testing_support::ExpectHfConfigError(Config(fields), text);
}

TEST(Gemma3nConfigTest, EachLayerHasItsWidthItsCutoffAndItsSource) {
  const ModelConfig config = LoadHfConfig(Config());
  EXPECT_EQ(config.IntermediateSize(config.layers[0]), 48);
  EXPECT_EQ(config.IntermediateSize(config.layers[3]), 24);
  EXPECT_NEAR(config.layers[0].gate_cutoff.value(), 0.0, 1e-12);
  EXPECT_FALSE(config.layers[1].gate_cutoff);
  EXPECT_NEAR(config.layers[2].gate_cutoff.value(), 1.6448536, 1e-6);
  EXPECT_EQ(config.layers[2].kv_source_layer, 0);
  EXPECT_EQ(config.layers[3].kv_source_layer, 1);
}

TEST(Gemma3nConfigTest, AllLayersMayHaveOneWidth) {
  const ModelConfig config = LoadHfConfig(Config({{"intermediate_size", 36}}));
  EXPECT_EQ(config.IntermediateSize(config.layers[3]), 36);
}

TEST(Gemma3nConfigTest, InvalidFieldsAreRejectedByName) {
  ExpectError({{"intermediate_size", {48, 40}}}, "intermediate_size: must have num_hidden_layers 4 entries");
  ExpectError({{"intermediate_size", json::array()}}, "intermediate_size: must not be empty");
  ExpectError({{"activation_sparsity_pattern", {0.5}}}, "activation_sparsity_pattern: not a list with");
  ExpectError({{"activation_sparsity_pattern", 0.5}}, "activation_sparsity_pattern: not a list with");
  ExpectError({{"activation_sparsity_pattern", {0.5, 0, 1.0, 0}}}, "activation_sparsity_pattern: value of layer 2");
  ExpectError({{"activation_sparsity_pattern", {0.5, 0, "x", 0}}}, "activation_sparsity_pattern: value of layer 2");
  ExpectError({{"num_kv_shared_layers", 3}}, "num_kv_shared_layers: a shared layer has no layer of its type");
  ExpectError({{"altup_num_inputs", 1}}, "altup_num_inputs: outside 2 to 16");
  ExpectError({{"altup_active_idx", 4}}, "altup_active_idx: outside 0 to 3");
  ExpectError({{"laurel_rank", 0}}, "laurel_rank: outside 1");
  ExpectError({{"hidden_size_per_layer_input", 0}}, "hidden_size_per_layer_input: outside 1");
  ExpectError({{"sliding_window", nullptr}}, "sliding_window: missing");
}

}  // namespace
}  // namespace vllm
