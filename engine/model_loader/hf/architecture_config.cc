#include "engine/model_loader/hf/architecture_config.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/escape.h"
#include "engine/model_loader/hf/gemma3n_config.h"
#include "engine/model_loader/hf/gemma4_config.h"
#include "engine/model_loader/hf/mamba_config.h"
#include "engine/model_loader/hf/mla_config.h"
#include "engine/model_loader/hf/model_types.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxExperts = 4096;
// With at most kMaxSharedExperts shared experts of this size, a product with another size fits into int64.
constexpr int64_t kMaxExpertSize = int64_t{1} << 20;
constexpr int64_t kMaxSharedExperts = 16;
constexpr double kMaxMultiplier = 1e6;

double Multiplier(const ConfigFields& fields, const char* name) {
  return fields.PositiveDouble(name, kMaxMultiplier).value_or(1.0);
}

void ReadGemma(const ConfigFields& fields, ModelConfig& config) {
  config.norm_offset = 1.0;
  if (const auto name = fields.String("hidden_activation")) config.hidden_act = *name;
  // The config.json of the first Gemma checkpoints says "gelu", but they were trained with its tanh approximation.
  if (config.model_type == "gemma" && config.hidden_act == "gelu") config.hidden_act = "gelu_pytorch_tanh";
  if (fields.Bool("use_bidirectional_attention").value_or(false) && config.model_type != "gemma3_text") {
    fields.Reject("use_bidirectional_attention", "only causal attention is supported");
  }
  if (config.model_type == "gemma") return;
  config.query_pre_attn_scalar = fields.PositiveDouble("query_pre_attn_scalar", kMaxMultiplier);
  // transformers applies attn_logit_softcapping in Gemma 2 only.
  if (config.model_type == "gemma2") {
    config.attn_logit_softcapping = fields.PositiveDouble("attn_logit_softcapping", kMaxMultiplier);
  }
  config.final_logit_softcapping = fields.PositiveDouble("final_logit_softcapping", kMaxMultiplier);
}

void ReadGranite(const ConfigFields& fields, ModelConfig& config) {
  config.embedding_multiplier = Multiplier(fields, "embedding_multiplier");
  config.residual_multiplier = Multiplier(fields, "residual_multiplier");
  config.attention_multiplier = Multiplier(fields, "attention_multiplier");
  config.logits_scaling = Multiplier(fields, "logits_scaling");
}

void ReadOpt(const ConfigFields& fields, ModelConfig& config) {
  config.word_embed_proj_dim = fields.Int("word_embed_proj_dim", 1, kMaxSize).value_or(config.hidden_size);
  config.do_layer_norm_before = fields.Bool("do_layer_norm_before").value_or(true);
  config.remove_final_norm = fields.Bool("_remove_final_layer_norm").value_or(false);
  config.norm_affine = fields.Bool("layer_norm_elementwise_affine").value_or(true);
  config.attention_bias = fields.Bool("enable_bias").value_or(true);
  config.mlp_bias = config.attention_bias;
}

void ReadGpt2(const ConfigFields& fields, ModelConfig& config) {
  config.conv1d_weights = true;
  config.attention_bias = true;
  config.mlp_bias = true;
  if (!fields.Bool("scale_attn_weights").value_or(true)) config.attention_multiplier = 1.0;
  config.scale_attn_by_inverse_layer_idx = fields.Bool("scale_attn_by_inverse_layer_idx").value_or(false);
  if (fields.Bool("add_cross_attention").value_or(false)) {
    fields.Reject("add_cross_attention", "cross-attention is not supported");
  }
}

void ReadStableLm(const ConfigFields& fields, ModelConfig& config) {
  config.attention_bias = fields.Bool("use_qkv_bias").value_or(false);
  config.use_qk_norm = fields.Bool("qk_layernorm").value_or(false);
  config.use_parallel_residual = fields.Bool("use_parallel_residual").value_or(false);
}

void ReadGptNeox(const ConfigFields& fields, ModelConfig& config) {
  config.use_parallel_residual = fields.Bool("use_parallel_residual").value_or(true);
  config.fused_qkv_by_head = true;
}

void ReadFalcon(const ConfigFields& fields, ModelConfig& config) {
  if (fields.Bool("alibi").value_or(false)) fields.Reject("alibi", "only rotary positions are supported");
  config.attention_bias = fields.Bool("bias").value_or(false);
  config.mlp_bias = config.attention_bias;
  const bool is_new = fields.Bool("new_decoder_architecture").value_or(false);
  config.use_parallel_residual = fields.Bool("parallel_attn").value_or(true);
  if (is_new && !config.use_parallel_residual) {
    fields.Reject("parallel_attn", "must be true with new_decoder_architecture");
  }
  // Without new_decoder_architecture, parallel attention and MLP share one norm, regardless of num_ln_in_parallel_attn.
  if (is_new) config.num_parallel_norms = fields.Int("num_ln_in_parallel_attn", 1, 2).value_or(2);
}

void ReadExperts(const ConfigFields& fields, const char* count, ModelConfig& config) {
  config.num_experts = fields.RequiredInt(count, 1, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 1, config.num_experts);
  config.moe_intermediate_size = fields.Int("moe_intermediate_size", 1, kMaxSize).value_or(config.intermediate_size);
  config.shared_expert_intermediate_size = fields.Int("shared_expert_intermediate_size", 1, kMaxSize).value_or(0);
  config.norm_topk_prob = fields.Bool("norm_topk_prob").value_or(false);
}

void ReadLinearAttention(const ConfigFields& fields, ModelConfig& config) {
  constexpr int64_t kMaxTaps = 64;
  constexpr int64_t kMaxLinearHeads = 1024;
  constexpr int64_t kMaxLinearHeadDim = 4096;
  config.norm_offset = 1.0;
  config.linear_conv_kernel_dim = fields.RequiredInt("linear_conv_kernel_dim", 1, kMaxTaps);
  config.linear_key_head_dim = fields.RequiredInt("linear_key_head_dim", 1, kMaxLinearHeadDim);
  config.linear_value_head_dim = fields.RequiredInt("linear_value_head_dim", 1, kMaxLinearHeadDim);
  config.linear_num_key_heads = fields.RequiredInt("linear_num_key_heads", 1, kMaxLinearHeads);
  config.linear_num_value_heads = fields.RequiredInt("linear_num_value_heads", 1, kMaxLinearHeads);
  if (config.linear_num_value_heads % config.linear_num_key_heads != 0) {
    fields.Reject("linear_num_value_heads",
                  "not a multiple of linear_num_key_heads " + std::to_string(config.linear_num_key_heads));
  }
  if (!fields.Bool("attn_output_gate").value_or(true)) {
    fields.Reject("attn_output_gate", "attention without an output gate is not supported");
  }
}

// In the config of dense models, intermediate_size is a base value unless block_auto_adjust_ff_dim is false.
void ReadLfm2(const ConfigFields& fields, ModelConfig& config) {
  constexpr int64_t kMaxTaps = 64;
  config.conv_l_cache = fields.RequiredInt("conv_L_cache", 1, kMaxTaps);
  config.conv_bias = fields.Bool("conv_bias").value_or(false);
  if (fields.Has("tie_embedding")) config.tie_word_embeddings = *fields.Bool("tie_embedding");
  if (config.model_type == "lfm2_moe") {
    ReadExperts(fields, "num_experts", config);
    config.use_expert_bias = fields.Bool("use_expert_bias").value_or(true);
    config.routed_scaling_factor = Multiplier(fields, "routed_scaling_factor");
    return;
  }
  if (!fields.Bool("block_auto_adjust_ff_dim").value_or(true)) return;
  const double factor = fields.PositiveDouble("block_ffn_dim_multiplier", kMaxMultiplier).value_or(1.0);
  const int64_t multiple = fields.Int("block_multiple_of", 1, kMaxSize).value_or(256);
  const auto base = static_cast<double>(2 * config.intermediate_size / 3);
  const double scaled = factor * base;
  if (!(scaled >= 1.0 && scaled <= static_cast<double>(kMaxSize))) {
    fields.Reject("block_ffn_dim_multiplier", "makes the MLP empty or too large");
  }
  config.intermediate_size = (static_cast<int64_t>(scaled) + multiple - 1) / multiple * multiple;
}

void ReadOlmoe(const ConfigFields& fields, ModelConfig& config) {
  ReadExperts(fields, fields.Has("num_local_experts") ? "num_local_experts" : "num_experts", config);
  config.moe_intermediate_size = config.intermediate_size;
  config.clip_qkv = fields.PositiveDouble("clip_qkv", kMaxMultiplier);
}

void ReadUseBias(const ConfigFields& fields, ModelConfig& config) {
  config.attention_bias = fields.Bool("use_bias").value_or(false);
  config.mlp_bias = config.attention_bias;
}

void ReadErnieMoe(const ConfigFields& fields, ModelConfig& config) {
  config.num_experts = fields.RequiredInt("moe_num_experts", 1, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("moe_k", 1, config.num_experts);
  config.moe_intermediate_size = fields.RequiredInt("moe_intermediate_size", 1, kMaxExpertSize);
  config.shared_expert_intermediate_size =
      fields.RequiredInt("moe_num_shared_experts", 0, kMaxSharedExperts) * config.moe_intermediate_size;
  config.moe_norm_min = fields.RequiredPositiveDouble("moe_norm_min", 1.0);
  // transformers gives lm_head a bias too, which is not implemented.
  if (fields.Bool("use_bias").value_or(false))
    fields.Reject("use_bias", "biases are not supported for this model_type");
}

// Reads the fields of experts in the style of DeepSeek-V3.
void ReadGroupedExperts(const ConfigFields& fields, const char* count, const char* num_shared, ModelConfig& config,
                        int64_t min_shared = 1) {
  config.num_experts = fields.RequiredInt(count, 1, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 1, config.num_experts);
  config.moe_intermediate_size = fields.RequiredInt("moe_intermediate_size", 1, kMaxExpertSize);
  config.shared_expert_intermediate_size =
      fields.RequiredInt(num_shared, min_shared, kMaxSharedExperts) * config.moe_intermediate_size;
  config.norm_topk_prob = fields.Bool("norm_topk_prob").value_or(true);
  config.routed_scaling_factor = Multiplier(fields, "routed_scaling_factor");
  config.n_group = fields.RequiredInt("n_group", 1, config.num_experts);
  config.topk_group = fields.RequiredInt("topk_group", 1, config.n_group);
  const int64_t group_size = config.num_experts / config.n_group;
  if (config.num_experts % config.n_group != 0 || (config.n_group > 1 && group_size < 2)) {
    fields.Reject("n_group",
                  "does not divide " + std::to_string(config.num_experts) + " experts into groups of 2 or more");
  }
  if (config.num_experts_per_tok > config.topk_group * group_size) {
    fields.Reject("num_experts_per_tok",
                  "more than the " + std::to_string(config.topk_group * group_size) + " experts of topk_group groups");
  }
}

void ReadNemotronHExperts(const ConfigFields& fields, ModelConfig& config) {
  if (NemotronHPattern(fields).find('E') == std::string::npos) return;
  ReadGroupedExperts(fields, "n_routed_experts", "n_shared_experts", config);
  if (fields.RequiredInt("n_shared_experts", 1, kMaxSharedExperts) != 1) {
    fields.Reject("n_shared_experts", "only 1 is supported for this model_type");
  }
  config.shared_expert_intermediate_size = fields.RequiredInt("moe_shared_expert_intermediate_size", 1, kMaxSize);
}

void ReadGlm4Moe(const ConfigFields& fields, ModelConfig& config) {
  ReadGroupedExperts(fields, "n_routed_experts", "n_shared_experts", config);
  config.use_qk_norm = fields.Bool("use_qk_norm").value_or(false);
}

void CheckString(const ConfigFields& fields, const char* name, const char* expected) {
  if (fields.String(name).value_or(expected) != expected) {
    fields.Reject(name, "only " + std::string(expected) + " is supported for this model_type");
  }
}

void ReadBailingMoe(const ConfigFields& fields, ModelConfig& config) {
  fields.RequiredInt("num_key_value_heads", 1, config.num_attention_heads);
  config.attention_bias = fields.Bool("use_qkv_bias").value_or(false);
  config.attention_out_bias = fields.Bool("use_bias").value_or(false);
  if (fields.Bool("norm_head").value_or(false)) fields.Reject("norm_head", "only false is supported");
  const char* num_shared = "num_shared_experts";
  if (config.model_type == "bailing_moe_v2") {
    CheckString(fields, "score_function", "sigmoid");
    ReadGroupedExperts(fields, "num_experts", num_shared, config, 0);
    // Inclusion AI's code ignores the field, and SGLang does not.
    if (!config.norm_topk_prob) fields.Reject("norm_topk_prob", "only true is supported for this model_type");
    const char* shared_size = "moe_shared_expert_intermediate_size";
    const int64_t size = fields.Int(shared_size, 1, kMaxSize).value_or(config.moe_intermediate_size);
    if (size != config.moe_intermediate_size && size != config.shared_expert_intermediate_size) {
      fields.Reject(shared_size, "not moe_intermediate_size " + std::to_string(config.moe_intermediate_size));
    }
    config.use_qk_norm = fields.Bool("use_qk_norm").value_or(true);
    return;
  }
  ReadExperts(fields, "num_experts", config);
  config.moe_intermediate_size = fields.RequiredInt("moe_intermediate_size", 1, kMaxExpertSize);
  config.shared_expert_intermediate_size =
      fields.RequiredInt(num_shared, 0, kMaxSharedExperts) * config.moe_intermediate_size;
}

// Experts are chosen by their softmax, without a bias.
void ReadDeepseekV2(const ConfigFields& fields, ModelConfig& config) {
  CheckString(fields, "scoring_func", "softmax");
  const std::string method = fields.String("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    ReadGroupedExperts(fields, "n_routed_experts", "n_shared_experts", config);
  } else if (method == "greedy") {
    config.num_experts = fields.RequiredInt("n_routed_experts", 1, kMaxExperts);
    config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 1, config.num_experts);
    config.moe_intermediate_size = fields.RequiredInt("moe_intermediate_size", 1, kMaxExpertSize);
    config.shared_expert_intermediate_size =
        fields.RequiredInt("n_shared_experts", 1, kMaxSharedExperts) * config.moe_intermediate_size;
    config.routed_scaling_factor = Multiplier(fields, "routed_scaling_factor");
  } else {
    fields.Reject("topk_method", "only greedy and group_limited_greedy are supported for this model_type");
  }
  // transformers ignores the field, DeepSeek's own code scales the weights either to sum to 1 or by
  // routed_scaling_factor, and vLLM does both. With a factor of 1, DeepSeek and vLLM agree.
  config.norm_topk_prob = fields.Bool("norm_topk_prob").value_or(false);
  if (config.norm_topk_prob && config.routed_scaling_factor != 1.0) {
    fields.Reject("norm_topk_prob", "true is supported only with a routed_scaling_factor of 1");
  }
}

void ReadDeepseek(const ConfigFields& fields, ModelConfig& config) {
  if (fields.Int("moe_layer_freq", 1, kMaxSize).value_or(1) != 1) {
    fields.Reject("moe_layer_freq", "only 1 is supported");
  }
  if (config.model_type == "deepseek_v2") return ReadDeepseekV2(fields, config);
  CheckString(fields, "scoring_func", "sigmoid");
  CheckString(fields, "topk_method", "noaux_tc");
  ReadGroupedExperts(fields, "n_routed_experts", "n_shared_experts", config);
  config.mlp_bias = false;
}

void ReadGraniteMoe(const ConfigFields& fields, ModelConfig& config) {
  ReadGranite(fields, config);
  config.num_experts =
      fields.RequiredInt("num_local_experts", config.model_type == "granitemoehybrid" ? 0 : 1, kMaxExperts);
  if (config.num_experts > 0) {
    config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 1, config.num_experts);
  }
  config.moe_intermediate_size = config.intermediate_size;
  if (config.model_type == "granitemoe") return;
  const bool needs_shared = config.model_type == "granitemoehybrid";
  config.shared_expert_intermediate_size =
      fields.Int("shared_intermediate_size", needs_shared ? 1 : 0, kMaxSize).value_or(0);
}

// The positions of Granite 4's layers may be left to the causal mask and to Mamba.
void ReadGraniteHybridLayers(const ConfigFields& fields, ModelConfig& config) {
  const char* name = fields.Has("layers_block_type") ? "layers_block_type" : "layer_types";
  const std::vector<std::string> types = fields.Strings(name);
  if (types.size() < config.layers.size()) fields.Reject(name, "fewer entries than num_hidden_layers");
  bool has_mamba = false;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].use_rope = fields.String("position_embedding_type").value_or("") == "rope";
    if (types[i] == "mamba" || types[i] == "linear_attention") {
      config.layers[i].mixer = LayerMixer::kMamba2;
      has_mamba = true;
    } else if (types[i] != "attention" && types[i] != "full_attention") {
      fields.Fail(name, "unknown layer type (" + Escape(types[i], 60) +
                            "; known: attention, full_attention, linear_attention, mamba)");
    }
  }
  if (has_mamba) ReadGraniteMamba(fields, config);
}

void ReadPhimoe(const ConfigFields& fields, ModelConfig& config) {
  config.num_experts = fields.RequiredInt("num_local_experts", 2, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 2, 2);
  config.moe_intermediate_size = config.intermediate_size;
  config.router_jitter_noise = fields.Double("router_jitter_noise", 0.0, 1.0).value_or(0.01);
  config.lm_head_bias = fields.Bool("lm_head_bias").value_or(false);
}

void ReadGptOss(const ConfigFields& fields, ModelConfig& config) {
  ReadExperts(fields, fields.Has("num_local_experts") ? "num_local_experts" : "num_experts", config);
  config.moe_intermediate_size = config.intermediate_size;
  config.swiglu_alpha = fields.PositiveDouble("swiglu_alpha", kMaxMultiplier).value_or(config.swiglu_alpha);
  config.swiglu_limit = fields.PositiveDouble("swiglu_limit", kMaxMultiplier).value_or(config.swiglu_limit);
}

// Returns true if the layer uses the sliding window by the architecture's rule, which applies unless layer_types
// overrides it.
bool IsSlidingByDefault(const ConfigFields& fields, const std::string& model_type, int64_t layer,
                        const LayerConfig& config) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (model_type == "qwen2" || model_type == "qwen3" || IsQwen2VL(model_type))
    return layer >= fields.Int("max_window_layers", 0, kMax).value_or(28);
  if (model_type == "qwen2_moe") {
    return layer % 2 == 0 && layer < fields.Int("max_window_layers", 0, kMax).value_or(28);
  }
  if (model_type == "olmo3") return (layer + 1) % 4 != 0;
  if (model_type == "exaone4") {
    if (!fields.Has("sliding_window")) return false;
    return (layer + 1) % fields.Int("sliding_window_pattern", 1, kMax).value_or(4) != 0;
  }
  if (model_type == "gemma2" || model_type == "gpt_oss") return layer % 2 == 0;
  if (model_type == "gemma3_text") return (layer + 1) % fields.Int("sliding_window_pattern", 1, kMax).value_or(6) != 0;
  if (model_type == "gemma3n_text") return (layer + 1) % 5 != 0;
  if (model_type == "gemma4_text") return (layer + 1) % 6 != 0;
  if (model_type == "smollm3") return !config.use_rope;
  return model_type == "starcoder2" || model_type == "ministral3" || model_type == "phimoe" ||
         model_type == "mistral" || model_type == "mixtral" || model_type == "phi3" || model_type == "qwen3_moe";
}

void ReadRopeLayers(const ConfigFields& fields, ModelConfig& config) {
  if (config.model_type != "smollm3") return;
  const std::vector<int64_t> flags = fields.Ints("no_rope_layers", 0, 1);
  const int64_t interval = fields.Int("no_rope_layer_interval", 1, kMaxSize).value_or(4);
  if (!flags.empty() && flags.size() < config.layers.size())
    fields.Reject("no_rope_layers", "fewer entries than num_hidden_layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    // Despite the name, 1 in no_rope_layers marks a layer with a rotary embedding.
    config.layers[i].use_rope = flags.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : flags[i] != 0;
  }
}

void ReadErnieMoeLayers(const ConfigFields& fields, ModelConfig& config) {
  const int64_t interval = fields.RequiredInt("moe_layer_interval", 1, kMaxSize);
  const int64_t start = fields.RequiredInt("moe_layer_start_index", 0, kMaxSize);
  const int64_t end = fields.RequiredInt("moe_layer_end_index", -1, kMaxSize);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    config.layers[static_cast<size_t>(i)].is_moe = (i + 1) % interval == 0 && i >= start && (end == -1 || i <= end);
  }
}

// GLM-4.7-Flash has either mlp_layer_types, like transformers, or first_k_dense_replace, like vLLM.
void ReadDenseLayers(const ConfigFields& fields, ModelConfig& config) {
  const std::vector<std::string> types = fields.Strings("mlp_layer_types");
  if (config.model_type != "glm4_moe_lite" || types.empty()) {
    const auto num_dense = static_cast<size_t>(fields.RequiredInt("first_k_dense_replace", 0, kMaxSize));
    for (size_t i = num_dense; i < config.layers.size(); ++i) config.layers[i].is_moe = true;
    return;
  }
  if (types.size() < config.layers.size()) fields.Reject("mlp_layer_types", "fewer entries than num_hidden_layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (types[i] != "dense" && types[i] != "sparse") {
      fields.Fail("mlp_layer_types", "unknown layer type (" + Escape(types[i], 60) + "; known: dense, sparse)");
    }
    config.layers[i].is_moe = types[i] == "sparse";
  }
}

void ReadExpertLayers(const ConfigFields& fields, ModelConfig& config) {
  if (config.num_experts == 0) return;
  if (config.model_type == "ernie4_5_moe") return ReadErnieMoeLayers(fields, config);
  if (config.model_type == "nemotron_h") return;
  if (config.model_type == "lfm2_moe") {
    const auto num_dense = static_cast<size_t>(fields.RequiredInt("num_dense_layers", 0, kMaxSize));
    for (size_t i = num_dense; i < config.layers.size(); ++i) config.layers[i].is_moe = true;
    return;
  }
  if (config.model_type == "glm4_moe" || config.model_type.starts_with("bailing_moe") || HasMLA(config.model_type))
    return ReadDenseLayers(fields, config);
  const int64_t step = fields.Int("decoder_sparse_step", 1, kMaxSize).value_or(1);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].is_moe = (static_cast<int64_t>(i) + 1) % step == 0;
  }
  for (const int64_t layer : fields.Ints("mlp_only_layers", 0, kMaxSize)) {
    if (static_cast<size_t>(layer) < config.layers.size()) config.layers[static_cast<size_t>(layer)].is_moe = false;
  }
}

bool HasLinearAttention(const std::string& model_type) {
  return model_type == "qwen3_next" || model_type == "qwen3_5_text" || model_type == "qwen3_5_moe_text";
}

// Sets the mixers of the layers that layer_types, if present, calls `name`. The others have full attention.
void ReadMixerTypes(const ConfigFields& fields, const std::vector<std::string>& types, const char* name,
                    LayerMixer mixer, ModelConfig& config) {
  if (types.size() < config.layers.size()) fields.Reject("layer_types", "fewer entries than num_hidden_layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (types[i] == name) {
      config.layers[i].mixer = mixer;
    } else if (types[i] != "full_attention") {
      fields.Fail("layer_types",
                  "unknown layer type (" + Escape(types[i], 60) + "; known: full_attention, " + name + ")");
    }
  }
}

void ReadMixers(const ConfigFields& fields, ModelConfig& config) {
  const bool has_linear_attention = HasLinearAttention(config.model_type);
  if (!has_linear_attention && config.model_type != "lfm2" && config.model_type != "lfm2_moe") return;
  const std::vector<std::string> types = fields.Strings("layer_types");
  if (!types.empty()) {
    return has_linear_attention
               ? ReadMixerTypes(fields, types, "linear_attention", LayerMixer::kLinearAttention, config)
               : ReadMixerTypes(fields, types, "conv", LayerMixer::kShortConv, config);
  }
  if (!has_linear_attention) {
    if (!fields.Has("full_attn_idxs")) return;
    for (LayerConfig& layer : config.layers) layer.mixer = LayerMixer::kShortConv;
    for (const int64_t layer : fields.Ints("full_attn_idxs", 0, config.num_hidden_layers - 1)) {
      config.layers[static_cast<size_t>(layer)].mixer = LayerMixer::kAttention;
    }
    return;
  }
  const int64_t interval = fields.Int("full_attention_interval", 1, kMaxSize).value_or(4);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % interval != 0) config.layers[i].mixer = LayerMixer::kLinearAttention;
  }
}

bool HasLayerTypes(const std::string& model_type) {
  if (IsQwen2VL(model_type)) return true;
  for (const char* name : {"qwen2", "qwen3", "qwen2_moe", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text",
                           "smollm3", "gpt_oss", "olmo3", "exaone4"}) {
    if (model_type == name) return true;
  }
  return false;
}

void ReadWindows(const ConfigFields& fields, ModelConfig& config) {
  // The config.json of Qwen2-MoE models has 0 for no window.
  std::optional<int64_t> window = fields.Int("sliding_window", config.model_type == "qwen2_moe" ? 0 : 1, kMaxSize);
  if (window == 0) window.reset();
  if (fields.Bool("use_sliding_window").value_or(true)) config.sliding_window = window;
  std::vector<std::string> types;
  if (HasLayerTypes(config.model_type)) types = fields.Strings("layer_types");
  if (!types.empty() && types.size() < config.layers.size())
    fields.Reject("layer_types", "fewer entries than num_hidden_layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    bool is_sliding = false;
    if (types.empty()) {
      is_sliding = IsSlidingByDefault(fields, config.model_type, static_cast<int64_t>(i), config.layers[i]);
    } else if (types[i] == "sliding_attention") {
      is_sliding = true;
    } else if (types[i] != "full_attention") {
      fields.Fail("layer_types",
                  "unknown layer type (" + Escape(types[i], 60) + "; known: full_attention, sliding_attention)");
    }
    if (is_sliding) config.layers[i].sliding_window = config.sliding_window.value_or(0);
    config.layers[i].use_local_rope = is_sliding && config.rope_local_theta.has_value();
    // With sliding windows, EXAONE 4 rotates only in the layers that have one.
    if (config.model_type == "exaone4" && config.sliding_window) config.layers[i].use_rope = is_sliding;
  }
}

}  // namespace

void ReadArchitectureConfig(const ConfigFields& fields, ModelConfig& config) {
  const std::string& model_type = config.model_type;
  if (model_type == "gemma" || model_type == "gemma2" || model_type == "gemma3_text") ReadGemma(fields, config);
  if (model_type == "gemma3n_text") ReadGemma3n(fields, config);
  if (model_type == "gemma4_text") ReadGemma4(fields, config);
  if (model_type == "granite") ReadGranite(fields, config);
  if (model_type == "opt") ReadOpt(fields, config);
  if (model_type == "gpt2") ReadGpt2(fields, config);
  if (model_type == "stablelm") ReadStableLm(fields, config);
  if (model_type == "falcon") ReadFalcon(fields, config);
  if (model_type == "gpt_neox") ReadGptNeox(fields, config);
  if (model_type == "mixtral") ReadExperts(fields, "num_local_experts", config);
  if (model_type == "qwen3_moe" || model_type == "qwen3_vl_moe_text") {
    ReadExperts(fields, fields.Has("num_local_experts") ? "num_local_experts" : "num_experts", config);
    config.norm_topk_prob = config.norm_topk_prob || model_type == "qwen3_vl_moe_text";
  }
  if (model_type == "lfm2" || model_type == "lfm2_moe") ReadLfm2(fields, config);
  if (model_type == "mamba2") ReadMamba2(fields, config);
  if (model_type == "falcon_h1") ReadFalconH1(fields, config);
  if (model_type == "nemotron_h") {
    ReadNemotronH(fields, config);
    ReadNemotronHExperts(fields, config);
  }
  if (HasLinearAttention(model_type)) {
    ReadLinearAttention(fields, config);
    if (model_type != "qwen3_5_text") ReadExperts(fields, "num_experts", config);
    if (model_type == "qwen3_5_moe_text") config.norm_topk_prob = true;
  }
  if (model_type == "olmoe") ReadOlmoe(fields, config);
  if (model_type == "seed_oss") config.attention_out_bias = fields.Bool("attention_out_bias").value_or(false);
  if (model_type == "starcoder2" || model_type == "ernie4_5") ReadUseBias(fields, config);
  if (model_type == "nemotron") config.norm_offset = 1.0;
  if (model_type == "ernie4_5_moe") ReadErnieMoe(fields, config);
  if (model_type == "glm4_moe") ReadGlm4Moe(fields, config);
  if (model_type.starts_with("bailing_moe")) ReadBailingMoe(fields, config);
  if (HasMLA(model_type)) ReadDeepseek(fields, config);
  if (model_type.starts_with("granitemoe")) ReadGraniteMoe(fields, config);
  if (model_type == "phimoe") ReadPhimoe(fields, config);
  if (model_type == "gpt_oss") ReadGptOss(fields, config);
  if (model_type == "qwen2_moe") {
    ReadExperts(fields, "num_experts", config);
    config.attention_bias = fields.Bool("qkv_bias").value_or(true);
  }
}

void ReadLayerConfigs(const ConfigFields& fields, ModelConfig& config) {
  config.layers.assign(static_cast<size_t>(config.num_hidden_layers), {});
  ReadMixers(fields, config);
  ReadRopeLayers(fields, config);
  if (config.model_type == "granitemoehybrid") ReadGraniteHybridLayers(fields, config);
  if (config.model_type == "nemotron_h") ReadNemotronHLayers(fields, config);
  if (config.model_type == "mamba2" || config.model_type == "falcon_h1") SetMambaLayers(config);
  ReadExpertLayers(fields, config);
  ReadWindows(fields, config);
  if (config.model_type == "gemma3n_text") ReadGemma3nLayers(fields, config);
  if (config.model_type == "gemma4_text") ReadGemma4Layers(fields, config);
}

}  // namespace vllm
