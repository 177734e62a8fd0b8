// Tests the architecture-specific fields of config.json and their defaults, which are those of transformers' config
// classes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/model_loader/load_hf_config.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::HfConfigError;
using testing_support::LoadHfConfig;

json Config(const std::string& model_type, const json& fields = json::object()) {
  json config = {{"architectures", {"X"}},   {"model_type", model_type},     {"vocab_size", 100},
                 {"hidden_size", 32},        {"intermediate_size", 48},      {"num_hidden_layers", 6},
                 {"num_attention_heads", 4}, {"num_key_value_heads", 2},     {"head_dim", 8},
                 {"dtype", "bfloat16"},      {"max_position_embeddings", 64}};
  config.update(fields);
  return config;
}

std::vector<int64_t> Windows(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.sliding_window);
  return windows;
}

TEST(ArchitectureConfigTest, LinearAttentionHasTheDefaultsOfTransformers) {
  for (const char* model_type : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}) {
    json fields = {{"hidden_size", 2048}, {"num_attention_heads", 8}, {"num_key_value_heads", 2}};
    json without_head_dim = Config(model_type, fields);
    without_head_dim.erase("head_dim");
    const ModelConfig config = LoadHfConfig(without_head_dim);
    EXPECT_EQ(config.head_dim, 256);
    EXPECT_EQ(config.rotary_dim, 64);
    EXPECT_EQ(config.norm_offset, 1.0);
    EXPECT_EQ(config.linear_conv_kernel_dim, 4);
    EXPECT_EQ(config.linear_key_head_dim, 128);
    EXPECT_EQ(config.linear_value_head_dim, 128);
    EXPECT_EQ(config.linear_num_key_heads, 16);
    EXPECT_EQ(config.linear_num_value_heads, 32);
    EXPECT_EQ(config.layers[2].mixer, LayerMixer::kLinearAttention);
    EXPECT_EQ(config.layers[3].mixer, LayerMixer::kAttention);
    EXPECT_EQ(config.RecurrentStateFloats(config.layers[0]), 3 * 8192 + 32 * 128 * 128);
    EXPECT_EQ(config.RecurrentStateFloats(config.layers[3]), 0);
  }
  const ModelConfig next = LoadHfConfig(Config("qwen3_next"));
  EXPECT_EQ(next.num_experts, 512);
  EXPECT_EQ(next.num_experts_per_tok, 10);
  EXPECT_EQ(next.moe_intermediate_size, 512);
  EXPECT_EQ(next.shared_expert_intermediate_size, 512);
  EXPECT_TRUE(next.norm_topk_prob);
  const ModelConfig moe = LoadHfConfig(Config("qwen3_5_moe_text"));
  EXPECT_EQ(moe.num_experts, 256);
  EXPECT_EQ(moe.num_experts_per_tok, 8);
  EXPECT_EQ(moe.moe_intermediate_size, 512);
  EXPECT_EQ(moe.shared_expert_intermediate_size, 512);
  EXPECT_TRUE(moe.norm_topk_prob);
}

TEST(ArchitectureConfigTest, LinearAttentionThatCannotRunIsRejectedByName) {
  EXPECT_NE(
      HfConfigError(Config("qwen3_5_text", {{"linear_num_value_heads", 24}})).find("linear_num_value_heads: not a"),
      std::string::npos);
  EXPECT_NE(
      HfConfigError(Config("qwen3_5_text", {{"linear_conv_kernel_dim", 65}})).find("linear_conv_kernel_dim: outside"),
      std::string::npos);
  EXPECT_NE(HfConfigError(Config("qwen3_5_text", {{"attn_output_gate", false}})).find("attn_output_gate: "),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("qwen3_5_text", {{"layer_types", {"linear_attention"}}})).find("layer_types: fewer"),
            std::string::npos);
  const json types(std::vector<std::string>(6, "sliding_attention"));
  EXPECT_NE(HfConfigError(Config("qwen3_5_text", {{"layer_types", types}})).find("layer_types: unknown layer type"),
            std::string::npos);
}

TEST(ArchitectureConfigTest, Lfm2HasTheDefaultsOfTransformers) {
  json fields = Config("lfm2", {{"intermediate_size", 1000}});
  fields.erase("num_key_value_heads");
  fields["num_attention_heads"] = 8;
  fields["hidden_size"] = 64;
  const ModelConfig config = LoadHfConfig(fields);
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.conv_l_cache, 3);
  EXPECT_FALSE(config.conv_bias);
  EXPECT_EQ(config.intermediate_size, 768);  // two thirds of 1000, as a multiple of 256
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kAttention);
  fields["full_attn_idxs"] = {1, 4};
  EXPECT_EQ(LoadHfConfig(fields).layers[0].mixer, LayerMixer::kShortConv);
  EXPECT_EQ(LoadHfConfig(fields).layers[4].mixer, LayerMixer::kAttention);
  EXPECT_EQ(LoadHfConfig(fields).RecurrentStateFloats(LoadHfConfig(fields).layers[0]), 128);
  fields["full_attn_idxs"] = {6};
  EXPECT_NE(HfConfigError(fields).find("full_attn_idxs: "), std::string::npos);
}

TEST(ArchitectureConfigTest, SlidingWindowsFollowTheArchitecturesRule) {
  using W = std::vector<int64_t>;
  const json window = {{"sliding_window", 7}, {"use_sliding_window", true}, {"max_window_layers", 4}};
  EXPECT_EQ(Windows(LoadHfConfig(Config("mistral", window))), (W{7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("phi3", window))), (W{7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("qwen2", window))), (W{0, 0, 0, 0, 7, 7}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("qwen3", window))), (W{0, 0, 0, 0, 7, 7}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("gemma2", window))), (W{7, 0, 7, 0, 7, 0}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("gemma3_text", window))), (W{7, 7, 7, 7, 7, 0}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("gemma3_text", {{"sliding_window", 7}, {"sliding_window_pattern", 2}}))),
            (W{7, 0, 7, 0, 7, 0}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("smollm3", window))), (W{0, 0, 0, 7, 0, 0}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("llama", window))), (W{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Windows(LoadHfConfig(Config("gemma", window))), (W{0, 0, 0, 0, 0, 0}));
}

TEST(ArchitectureConfigTest, SlidingWindowsFollowTheArchitecturesDefaults) {
  EXPECT_EQ(LoadHfConfig(Config("qwen2", {{"sliding_window", 7}})).sliding_window, std::nullopt);
  EXPECT_EQ(LoadHfConfig(Config("mistral")).sliding_window, 4096);
  EXPECT_EQ(LoadHfConfig(Config("mistral", {{"sliding_window", nullptr}})).sliding_window, std::nullopt);
  EXPECT_EQ(LoadHfConfig(Config("gemma2")).sliding_window, 4096);
}

TEST(ArchitectureConfigTest, LayerTypesOverrideTheDefaultRule) {
  const json types = {"full_attention",    "sliding_attention", "sliding_attention",
                      "sliding_attention", "full_attention",    "sliding_attention"};
  const ModelConfig config = LoadHfConfig(Config("gemma3_text", {{"layer_types", types}, {"sliding_window", 9}}));
  EXPECT_EQ(Windows(config), (std::vector<int64_t>{0, 9, 9, 9, 0, 9}));
  EXPECT_FALSE(config.layers[0].use_local_rope);
  EXPECT_TRUE(config.layers[1].use_local_rope);
  EXPECT_NE(HfConfigError(Config("qwen3", {{"layer_types", {"full_attention"}}}))
                .find("layer_types: fewer entries than num_hidden_layers"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("qwen3", {{"layer_types", json(std::vector<std::string>(6, "chunked\n"))}}))
                .find("layer_types: unknown layer type"),
            std::string::npos);
}

TEST(ArchitectureConfigTest, RotaryParametersPerLayerTypeAreReadForGemma3) {
  const json rope = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
                     {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 500.0}}}};
  const ModelConfig config = LoadHfConfig(Config("gemma3_text", {{"rope_parameters", rope}}));
  EXPECT_EQ(config.rope_theta, 2e6);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config.rope_local_theta, 500.0);
  const ModelConfig defaults = LoadHfConfig(Config("gemma3_text"));
  EXPECT_EQ(defaults.rope_theta, 1e6);
  EXPECT_EQ(defaults.rope_local_theta, 1e4);
}

TEST(ArchitectureConfigTest, LayersWithoutRopeComeFromTheListOrTheInterval) {
  const auto with_rope = [](const ModelConfig& config) {
    std::string flags;
    for (const LayerConfig& layer : config.layers) flags += layer.use_rope ? '1' : '0';
    return flags;
  };
  EXPECT_EQ(with_rope(LoadHfConfig(Config("smollm3"))), "111011");
  EXPECT_EQ(with_rope(LoadHfConfig(Config("smollm3", {{"no_rope_layer_interval", 2}}))), "101010");
  EXPECT_EQ(with_rope(LoadHfConfig(Config("smollm3", {{"no_rope_layers", {0, 1, 1, 0, 0, 1}}}))), "011001");
  EXPECT_NE(
      HfConfigError(Config("smollm3", {{"no_rope_layers", {0, 2}}})).find("no_rope_layers: not a whole number from 0"),
      std::string::npos);
}

TEST(ArchitectureConfigTest, ExpertFieldsAreReadAndRangeChecked) {
  const json experts = {{"num_experts", 8},         {"num_experts_per_tok", 2},    {"moe_intermediate_size", 12},
                        {"decoder_sparse_step", 2}, {"mlp_only_layers", {3, 100}}, {"norm_topk_prob", true}};
  const ModelConfig config = LoadHfConfig(Config("qwen3_moe", experts));
  EXPECT_EQ(config.num_experts, 8);
  EXPECT_EQ(config.moe_intermediate_size, 12);
  EXPECT_TRUE(config.norm_topk_prob);
  std::string sparse;
  for (const LayerConfig& layer : config.layers) sparse += layer.is_moe ? '1' : '0';
  EXPECT_EQ(sparse, "010001");
  EXPECT_NE(HfConfigError(Config("mixtral", {{"num_local_experts", 4}, {"num_experts_per_tok", 5}}))
                .find("num_experts_per_tok: outside 1 to 4 (5)"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("qwen3_moe", {{"num_experts", 1 << 30}})).find("num_experts: outside 1 to 4096"),
            std::string::npos);
}

TEST(ArchitectureConfigTest, PartialRotationIsReadWhereTheArchitectureSupportsIt) {
  EXPECT_EQ(LoadHfConfig(Config("stablelm")).rotary_dim, 2);
  EXPECT_EQ(LoadHfConfig(Config("phi3", {{"partial_rotary_factor", 0.75}})).rotary_dim, 6);
  EXPECT_EQ(LoadHfConfig(Config("phi3")).rotary_dim, 8);
  EXPECT_NE(HfConfigError(Config("phi3", {{"partial_rotary_factor", 0.4}}))
                .find("must select an even number of dimensions, at least 2, of head_dim 8"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("llama", {{"partial_rotary_factor", 0.5}})).find("partial_rotary_factor: "),
            std::string::npos);
}

TEST(ArchitectureConfigTest, MissingFieldsGetTheArchitecturesDefaults) {
  EXPECT_TRUE(LoadHfConfig(Config("gemma")).tie_word_embeddings);
  EXPECT_EQ(LoadHfConfig(Config("gemma", {{"hidden_act", "gelu"}})).hidden_act, "gelu_pytorch_tanh");
  EXPECT_EQ(LoadHfConfig(Config("gemma", {{"hidden_act", "gelu"}, {"hidden_activation", "gelu"}})).hidden_act,
            "gelu_pytorch_tanh");
  const ModelConfig gemma2 = LoadHfConfig(Config("gemma2"));
  EXPECT_EQ(gemma2.attn_logit_softcapping, 50.0);
  EXPECT_EQ(gemma2.final_logit_softcapping, 30.0);
  EXPECT_EQ(gemma2.query_pre_attn_scalar, 256.0);
  EXPECT_EQ(gemma2.norm_offset, 1.0);
  EXPECT_FALSE(LoadHfConfig(Config("gemma2", {{"attn_logit_softcapping", nullptr}})).attn_logit_softcapping);
  json gemma3n_fields = Config("gemma3n_text", {{"num_hidden_layers", 35}});
  for (const char* name : {"num_key_value_heads", "head_dim"}) gemma3n_fields.erase(name);
  const ModelConfig gemma3n = LoadHfConfig(gemma3n_fields);
  EXPECT_EQ(gemma3n.num_key_value_heads, 2);
  EXPECT_EQ(gemma3n.head_dim, 256);
  EXPECT_EQ(gemma3n.hidden_act, "gelu_pytorch_tanh");
  EXPECT_TRUE(gemma3n.tie_word_embeddings);
  EXPECT_EQ(gemma3n.sliding_window, 512);
  EXPECT_EQ(gemma3n.rope_theta, 1e6);
  EXPECT_EQ(gemma3n.rope_local_theta, 1e4);
  EXPECT_EQ(gemma3n.final_logit_softcapping, 30.0);
  EXPECT_EQ(gemma3n.hidden_size_per_layer_input, 256);
  EXPECT_EQ(gemma3n.vocab_size_per_layer_input, 262144);
  EXPECT_EQ(gemma3n.laurel_rank, 64);
  EXPECT_EQ(gemma3n.altup_num_inputs, 4);
  EXPECT_EQ(gemma3n.altup_active_idx, 0);
  EXPECT_TRUE(gemma3n.altup_correct_scale);
  EXPECT_EQ(gemma3n.norm_offset, 0.0);
  EXPECT_EQ(gemma3n.layers[3].sliding_window, 512);
  EXPECT_EQ(gemma3n.layers[4].sliding_window, 0);
  EXPECT_LT(gemma3n.layers[19].kv_source_layer, 0);
  EXPECT_EQ(gemma3n.layers[20].kv_source_layer, 18);
  EXPECT_EQ(gemma3n.layers[24].kv_source_layer, 19);
  EXPECT_NEAR(gemma3n.layers[9].gate_cutoff.value(), 1.6448536, 1e-6);
  EXPECT_FALSE(gemma3n.layers[10].gate_cutoff);
  json gemma4_fields =
      Config("gemma4_text",
             {{"enable_moe_block", true}, {"num_experts", 4}, {"top_k_experts", 2}, {"moe_intermediate_size", 12}});
  gemma4_fields.erase("num_key_value_heads");
  gemma4_fields.erase("head_dim");
  const ModelConfig gemma4 = LoadHfConfig(gemma4_fields);
  EXPECT_EQ(gemma4.num_key_value_heads, 4);
  EXPECT_EQ(gemma4.head_dim, 256);
  EXPECT_EQ(gemma4.global_head_dim, 512);
  EXPECT_EQ(gemma4.num_global_key_value_heads, 0);
  EXPECT_EQ(gemma4.hidden_act, "gelu_pytorch_tanh");
  EXPECT_EQ(gemma4.norm_offset, 0.0);
  EXPECT_EQ(gemma4.rms_norm_eps, 1e-6);
  EXPECT_TRUE(gemma4.tie_word_embeddings);
  EXPECT_FALSE(gemma4.attention_bias);
  EXPECT_FALSE(gemma4.final_logit_softcapping);
  EXPECT_EQ(Windows(gemma4), (std::vector<int64_t>{512, 512, 512, 512, 512, 0}));
  EXPECT_EQ(gemma4.rope_theta, 1e6);
  EXPECT_EQ(gemma4.rope_scaling.kind, RopeScaling::Kind::kProportional);
  EXPECT_EQ(gemma4.rope_scaling.partial_rotary_factor, 0.25);
  EXPECT_EQ(gemma4.rope_scaling.factor, 1.0);
  EXPECT_EQ(gemma4.rope_local_theta, 1e4);
  EXPECT_EQ(gemma4.hidden_size_per_layer_input, 256);
  EXPECT_EQ(gemma4.vocab_size_per_layer_input, 262144);
  EXPECT_TRUE(gemma4.norm_topk_prob);
  for (const LayerConfig& layer : gemma4.layers) {
    EXPECT_LT(layer.kv_source_layer, 0);
    EXPECT_FALSE(layer.values_are_keys);
    EXPECT_EQ(layer.intermediate_size, 0);
  }
  EXPECT_EQ(LoadHfConfig(Config("smollm3")).rope_theta, 2e6);
  EXPECT_EQ(LoadHfConfig(Config("granite")).attention_multiplier, 1.0);
  EXPECT_EQ(LoadHfConfig(Config("arcee")).hidden_act, "relu2");
  EXPECT_EQ(LoadHfConfig(Config("arcee")).rms_norm_eps, 1e-5);
  const ModelConfig olmoe = LoadHfConfig(Config("olmoe", {{"num_experts", 9}}));
  EXPECT_EQ(olmoe.rms_norm_eps, 1e-5);
  EXPECT_EQ(olmoe.num_experts_per_tok, 8);
  EXPECT_FALSE(olmoe.norm_topk_prob);
  EXPECT_FALSE(olmoe.clip_qkv);
  const ModelConfig olmo3 = LoadHfConfig(Config("olmo3"));
  EXPECT_EQ(olmo3.rms_norm_eps, 1e-5);
  EXPECT_EQ(olmo3.rope_theta, 5e5);
  EXPECT_EQ(olmo3.rope_local_theta, 5e5);
  EXPECT_EQ(Windows(olmo3), (std::vector<int64_t>{4096, 4096, 4096, 0, 4096, 4096}));
  EXPECT_TRUE(LoadHfConfig(Config("seed_oss")).attention_bias);
  EXPECT_FALSE(LoadHfConfig(Config("seed_oss")).attention_out_bias);
  json seed_oss = Config("seed_oss", {{"num_attention_heads", 16}});
  seed_oss.erase("head_dim");
  seed_oss.erase("num_key_value_heads");
  EXPECT_EQ(LoadHfConfig(seed_oss).head_dim, 128);
  EXPECT_EQ(LoadHfConfig(seed_oss).num_key_value_heads, 8);
  const ModelConfig starcoder2 = LoadHfConfig(Config("starcoder2", {{"rms_norm_eps", 1.0}}));
  EXPECT_EQ(starcoder2.rms_norm_eps, 1e-5);
  EXPECT_EQ(starcoder2.hidden_act, "gelu_pytorch_tanh");
  EXPECT_TRUE(starcoder2.attention_bias);
  EXPECT_TRUE(starcoder2.mlp_bias);
  EXPECT_TRUE(starcoder2.tie_word_embeddings);
  EXPECT_FALSE(starcoder2.sliding_window);
  const ModelConfig ernie = LoadHfConfig(Config("ernie4_5"));
  EXPECT_EQ(ernie.rms_norm_eps, 1e-5);
  EXPECT_EQ(ernie.rope_theta, 5e5);
  EXPECT_TRUE(ernie.tie_word_embeddings);
  EXPECT_FALSE(ernie.attention_bias);
  EXPECT_TRUE(LoadHfConfig(Config("ernie4_5", {{"use_bias", true}})).mlp_bias);
  for (const char* model_type : {"glm", "glm4"}) {
    const ModelConfig glm = LoadHfConfig(Config(model_type));
    EXPECT_EQ(glm.rms_norm_eps, 1.5625e-7);
    EXPECT_EQ(glm.rotary_dim, 4);
    EXPECT_TRUE(glm.attention_bias);
    EXPECT_EQ(LoadHfConfig(Config(model_type, {{"partial_rotary_factor", 1.0}})).rotary_dim, 8);
  }
  const ModelConfig ministral = LoadHfConfig(Config("ministral3"));
  EXPECT_EQ(ministral.rms_norm_eps, 1e-5);
  EXPECT_EQ(ministral.rope_theta, 1e6);
  EXPECT_EQ(ministral.rope_scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(ministral.rope_scaling.factor, 16.0);
  EXPECT_EQ(ministral.rope_scaling.mscale_all_dim, 1.0);
  EXPECT_EQ(ministral.rope_scaling.original_max_position_embeddings, 16384);
  EXPECT_EQ(ministral.llama_4_scaling_beta, 0.1);
  EXPECT_FALSE(ministral.sliding_window);
  EXPECT_NE(HfConfigError(Config("ministral3", {{"rope_parameters", {{"rope_theta", 1e6}}}}))
                .find("llama_4_scaling_beta: missing"),
            std::string::npos);
  const ModelConfig exaone4 = LoadHfConfig(Config("exaone4"));
  EXPECT_EQ(exaone4.rms_norm_eps, 1e-5);
  EXPECT_EQ(Windows(exaone4), (std::vector<int64_t>{4096, 4096, 4096, 0, 4096, 4096}));
  EXPECT_TRUE(exaone4.layers[0].use_rope);
  EXPECT_FALSE(exaone4.layers[3].use_rope);
  const ModelConfig exaone4_full =
      LoadHfConfig(Config("exaone4", {{"sliding_window", nullptr}, {"sliding_window_pattern", 0}}));
  EXPECT_EQ(Windows(exaone4_full), std::vector<int64_t>(6));
  EXPECT_TRUE(exaone4_full.layers[3].use_rope);
  EXPECT_EQ(LoadHfConfig(Config("hunyuan_v1_dense")).rms_norm_eps, 1e-5);
  const json alpha = {{"rope_type", "dynamic"}, {"alpha", 1000.0}, {"factor", 1.0}, {"rope_theta", 1e4}};
  const ModelConfig hunyuan = LoadHfConfig(Config("hunyuan_v1_dense", {{"rope_parameters", alpha}}));
  EXPECT_DOUBLE_EQ(hunyuan.rope_theta, 1e8);
  EXPECT_EQ(hunyuan.rope_scaling.kind, RopeScaling::Kind::kNone);
  const ModelConfig helium = LoadHfConfig(Config("helium"));
  EXPECT_EQ(helium.rms_norm_eps, 1e-8);
  EXPECT_EQ(helium.rope_theta, 1e5);
  EXPECT_FALSE(helium.attention_bias);
  const ModelConfig nemotron = LoadHfConfig(Config("nemotron", {{"rms_norm_eps", 1.0}}));
  EXPECT_EQ(nemotron.rms_norm_eps, 1e-5);
  EXPECT_EQ(nemotron.hidden_act, "relu2");
  EXPECT_EQ(nemotron.rotary_dim, 4);
  EXPECT_EQ(nemotron.norm_offset, 1.0);
  const ModelConfig ernie_moe = LoadHfConfig(Config("ernie4_5_moe"));
  EXPECT_EQ(ernie_moe.rms_norm_eps, 1e-5);
  EXPECT_EQ(ernie_moe.rope_theta, 5e5);
  EXPECT_TRUE(ernie_moe.tie_word_embeddings);
  EXPECT_EQ(ernie_moe.num_experts, 64);
  EXPECT_EQ(ernie_moe.num_experts_per_tok, 6);
  EXPECT_EQ(ernie_moe.moe_intermediate_size, 1536);
  EXPECT_EQ(ernie_moe.shared_expert_intermediate_size, 3072);
  EXPECT_EQ(ernie_moe.moe_norm_min, 1e-12);
  EXPECT_FALSE(ernie_moe.layers[0].is_moe);
  EXPECT_TRUE(ernie_moe.layers[1].is_moe);
  EXPECT_TRUE(ernie_moe.layers[5].is_moe);
  EXPECT_FALSE(
      LoadHfConfig(Config("ernie4_5_moe", {{"moe_layer_interval", 2}, {"moe_layer_end_index", 4}})).layers[5].is_moe);
  EXPECT_NE(HfConfigError(Config("ernie4_5_moe", {{"moe_k", 65}})).find("moe_k: outside 1 to 64 (65)"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("ernie4_5_moe", {{"use_bias", true}})).find("use_bias: "), std::string::npos);
  const ModelConfig glm4_moe = LoadHfConfig(Config("glm4_moe"));
  EXPECT_EQ(glm4_moe.rms_norm_eps, 1e-5);
  EXPECT_EQ(glm4_moe.rotary_dim, 4);
  EXPECT_EQ(glm4_moe.num_experts, 128);
  EXPECT_EQ(glm4_moe.num_experts_per_tok, 8);
  EXPECT_EQ(glm4_moe.moe_intermediate_size, 1408);
  EXPECT_EQ(glm4_moe.shared_expert_intermediate_size, 1408);
  EXPECT_TRUE(glm4_moe.norm_topk_prob);
  EXPECT_FALSE(glm4_moe.use_qk_norm);
  EXPECT_FALSE(glm4_moe.layers[0].is_moe);
  EXPECT_TRUE(glm4_moe.layers[1].is_moe);
  EXPECT_NE(HfConfigError(Config("glm4_moe", {{"n_group", 3}})).find("n_group: does not divide 128 experts"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("glm4_moe", {{"n_group", 128}})).find("n_group: "), std::string::npos);
  EXPECT_NE(HfConfigError(Config("glm4_moe", {{"n_group", 32}})).find("num_experts_per_tok: more than the 4 experts"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("glm4_moe", {{"topk_group", 2}})).find("topk_group: outside 1 to 1 (2)"),
            std::string::npos);
  for (const char* model_type : {"granitemoe", "granitemoeshared", "granitemoehybrid"}) {
    const json layers = {{"layer_types", json(std::vector<std::string>(6, "attention"))}};
    const ModelConfig granite = LoadHfConfig(Config(model_type, layers));
    EXPECT_EQ(granite.attention_multiplier, 1.0);
    EXPECT_EQ(granite.num_experts, 8);
    EXPECT_EQ(granite.num_experts_per_tok, 2);
    EXPECT_EQ(granite.moe_intermediate_size, 48);
    EXPECT_EQ(granite.shared_expert_intermediate_size, model_type == std::string("granitemoehybrid") ? 1024 : 0);
    EXPECT_EQ(granite.layers[0].use_rope, model_type != std::string("granitemoehybrid"));
  }
  json mamba = {{"layer_types", {"attention", "mamba", "attention", "attention", "attention", "attention"}}};
  EXPECT_NE(HfConfigError(Config("granitemoehybrid", mamba)).find("mamba_n_heads: does not divide"), std::string::npos);
  mamba["mamba_n_heads"] = 4;
  const ModelConfig hybrid = LoadHfConfig(Config("granitemoehybrid", mamba));
  EXPECT_EQ(hybrid.layers[0].mixer, LayerMixer::kAttention);
  EXPECT_EQ(hybrid.layers[1].mixer, LayerMixer::kMamba2);
  EXPECT_EQ(hybrid.mamba_n_groups, 1);
  EXPECT_EQ(hybrid.mamba_d_state, 256);
  EXPECT_EQ(hybrid.mamba_d_conv, 4);
  EXPECT_EQ(hybrid.mamba_d_head * 4, 2 * hybrid.hidden_size);
  EXPECT_TRUE(hybrid.mamba_conv_bias);
  mamba["time_step_limit"] = {0.0, 0.1};
  EXPECT_NE(HfConfigError(Config("granitemoehybrid", mamba)).find("time_step_limit: only no limit"), std::string::npos);
  mamba["layer_types"][1] = "rnn";
  EXPECT_NE(HfConfigError(Config("granitemoehybrid", mamba)).find("layer_types: unknown layer type (rnn"),
            std::string::npos);
  EXPECT_NE(HfConfigError(Config("granitemoehybrid")).find("layer_types: fewer entries"), std::string::npos);
  EXPECT_NE(HfConfigError(Config("granitemoe", {{"num_local_experts", 0}})).find("num_local_experts: "),
            std::string::npos);
  const ModelConfig phimoe = LoadHfConfig(Config("phimoe"));
  EXPECT_EQ(phimoe.rms_norm_eps, 1e-5);
  EXPECT_EQ(phimoe.rope_theta, 1e6);
  EXPECT_EQ(phimoe.num_experts, 16);
  EXPECT_EQ(phimoe.num_experts_per_tok, 2);
  EXPECT_EQ(phimoe.router_jitter_noise, 0.01);
  EXPECT_FALSE(phimoe.lm_head_bias);
  EXPECT_FALSE(phimoe.sliding_window);
  EXPECT_NE(
      HfConfigError(Config("phimoe", {{"num_experts_per_tok", 1}})).find("num_experts_per_tok: outside 2 to 2 (1)"),
      std::string::npos);
  EXPECT_FALSE(LoadHfConfig(Config("llama")).tie_word_embeddings);
}

TEST(ArchitectureConfigTest, MissingFieldsOfGptOssGetItsDefaults) {
  json fields = Config("gpt_oss", {{"num_local_experts", 8}, {"moe_intermediate_size", 5}});
  for (const char* name : {"num_key_value_heads", "head_dim", "max_position_embeddings"}) fields.erase(name);
  fields["num_attention_heads"] = 16;
  const ModelConfig config = LoadHfConfig(fields);
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope_theta, 1.5e5);
  EXPECT_EQ(config.max_position_embeddings, 131072);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(config.rope_scaling.factor, 32.0);
  EXPECT_EQ(config.rope_scaling.original_max_position_embeddings, 4096);
  EXPECT_FALSE(config.rope_scaling.truncate);
  EXPECT_EQ(Windows(config), (std::vector<int64_t>{128, 0, 128, 0, 128, 0}));
  EXPECT_TRUE(config.attention_bias);
  EXPECT_EQ(config.num_experts_per_tok, 4);
  // transformers does not read moe_intermediate_size.
  EXPECT_EQ(config.moe_intermediate_size, 48);
  EXPECT_EQ(config.swiglu_alpha, 1.702);
  EXPECT_EQ(config.swiglu_limit, 7.0);
  const json other = {{"num_experts", 4}, {"rope_parameters", {{"rope_theta", 300.0}}}, {"swiglu_limit", -1}};
  EXPECT_NE(HfConfigError(Config("gpt_oss", other)).find("swiglu_limit: "), std::string::npos);
  EXPECT_NE(HfConfigError(Config("gpt_oss")).find("num_experts: missing"), std::string::npos);
}

TEST(ArchitectureConfigTest, FalconsNumberOfKVHeadsFollowsFromItsFlags) {
  json config = Config("falcon");
  config.erase("num_key_value_heads");
  EXPECT_EQ(LoadHfConfig(config).num_key_value_heads, 1);
  config["multi_query"] = false;
  EXPECT_EQ(LoadHfConfig(config).num_key_value_heads, 4);
  config["new_decoder_architecture"] = true;
  config["num_kv_heads"] = 2;
  EXPECT_EQ(LoadHfConfig(config).num_key_value_heads, 2);
  EXPECT_EQ(LoadHfConfig(config).num_parallel_norms, 2);
  config["alibi"] = true;
  EXPECT_NE(HfConfigError(config).find("alibi: only rotary positions are supported (true)"), std::string::npos);
}

TEST(ArchitectureConfigTest, TheTextConfigOfAMultimodalModelIsRead) {
  json text = Config("gemma3_text");
  text.erase("architectures");
  text.erase("dtype");
  for (const char* name : {"vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim"}) text.erase(name);
  json config_json = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                      {"model_type", "gemma3"},
                      {"torch_dtype", "bfloat16"},
                      {"eos_token_id", {1, 106}},
                      {"text_config", text}};
  const ModelConfig config = LoadHfConfig(config_json);
  EXPECT_EQ(config.architecture, "Gemma3ForConditionalGeneration");
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.weight_prefix, "language_model.");
  EXPECT_EQ(config.vocab_size, 262208);
  EXPECT_EQ(config.num_attention_heads, 8);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.dtype, kernels::DType::kBFloat16);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{1, 106}));
  EXPECT_TRUE(config.tie_word_embeddings);
  config_json["text_config"]["hidden_size"] = "wide";
  EXPECT_NE(HfConfigError(config_json).find("text_config.hidden_size: not a whole number (\"wide\")"),
            std::string::npos);
}

TEST(ArchitectureConfigTest, TheArchitectureIsCheckedBeforeOtherFields) {
  TempDirectory directory;
  directory.Write("config.json", R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "state_size": 16})");
  const auto check = [](const ModelConfig& config) { throw ModelError("not " + config.architecture); };
  EXPECT_EQ(MessageOf<ModelError>([&] { LoadModelConfig(directory.path(), check); }), "not MambaForCausalLM");
}

TEST(ArchitectureConfigTest, ConfigsWithChangedBytesLoadOrAreRejected) {
  uint32_t random = 5;
  const auto next = [&random] {
    random = random * 1664525u + 1013904223u;
    return random >> 8;
  };
  TempDirectory directory;
  for (const char* model_type :
       {"gemma3_text", "gemma4_text", "phi3", "qwen2_moe", "smollm3", "falcon", "gpt2", "opt", "mixtral", "gpt_oss",
        "glm4_moe", "ernie4_5_moe", "granitemoehybrid", "ministral3", "olmo3", "phimoe", "bailing_moe"}) {
    const std::string original = Config(model_type, {{"num_hidden_layers", 2},
                                                     {"layer_types", {"full_attention", "full_attention"}},
                                                     {"no_rope_layers", {1, 0}},
                                                     {"num_experts", 4}})
                                     .dump();
    int num_loaded = 0;
    int num_rejected = 0;
    for (int i = 0; i < 200; ++i) {
      std::string text = original;
      for (uint32_t flips = 1 + next() % 3; flips > 0; --flips) text[next() % text.size()] = static_cast<char>(next());
      directory.Write("config.json", text);
      try {
        LoadModelConfig(directory.path());
        ++num_loaded;
      } catch (const ModelError&) {
        ++num_rejected;
      }
    }
    EXPECT_GT(num_loaded, 0) << model_type;
    EXPECT_GT(num_rejected, 0) << model_type;
  }
}

}  // namespace
}  // namespace vllm
