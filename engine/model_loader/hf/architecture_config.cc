#include "engine/model_loader/hf/architecture_config.h"

#include <limits>
#include <string>

#include "engine/config/escape.h"
#include "engine/model_loader/hf/gemma3n_config.h"
#include "engine/model_loader/hf/gemma4_config.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxExperts = 4096;
constexpr double kMaxMultiplier = 1e6;

double Multiplier(const ConfigFields& fields, const char* name) {
  return fields.PositiveDouble(name, kMaxMultiplier).value_or(1.0);
}

void ReadGemma(const ConfigFields& fields, ModelConfig& config) {
  config.norm_offset = 1.0;
  if (const auto name = fields.String("hidden_activation")) config.hidden_act = *name;
  // The config.json of the first Gemma checkpoints says "gelu", but they were trained with its tanh approximation.
  if (config.model_type == "gemma" && config.hidden_act == "gelu") config.hidden_act = "gelu_pytorch_tanh";
  if (fields.Bool("use_bidirectional_attention").value_or(false)) {
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

// Returns true if the layer uses the sliding window by the architecture's rule, which applies unless layer_types
// overrides it.
bool IsSlidingByDefault(const ConfigFields& fields, const std::string& model_type, int64_t layer,
                        const LayerConfig& config) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (model_type == "qwen2" || model_type == "qwen3")
    return layer >= fields.Int("max_window_layers", 0, kMax).value_or(28);
  if (model_type == "qwen2_moe") {
    return layer % 2 == 0 && layer < fields.Int("max_window_layers", 0, kMax).value_or(28);
  }
  if (model_type == "gemma2") return layer % 2 == 0;
  if (model_type == "gemma3_text") return (layer + 1) % fields.Int("sliding_window_pattern", 1, kMax).value_or(6) != 0;
  if (model_type == "gemma3n_text") return (layer + 1) % 5 != 0;
  if (model_type == "gemma4_text") return (layer + 1) % 6 != 0;
  if (model_type == "smollm3") return !config.use_rope;
  return model_type == "mistral" || model_type == "mixtral" || model_type == "phi3" || model_type == "qwen3_moe";
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

void ReadExpertLayers(const ConfigFields& fields, ModelConfig& config) {
  if (config.num_experts == 0) return;
  const int64_t step = fields.Int("decoder_sparse_step", 1, kMaxSize).value_or(1);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].is_moe = (static_cast<int64_t>(i) + 1) % step == 0;
  }
  for (const int64_t layer : fields.Ints("mlp_only_layers", 0, kMaxSize)) {
    if (static_cast<size_t>(layer) < config.layers.size()) config.layers[static_cast<size_t>(layer)].is_moe = false;
  }
}

bool HasLayerTypes(const std::string& model_type) {
  for (const char* name :
       {"qwen2", "qwen3", "qwen2_moe", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text", "smollm3"}) {
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
  if (model_type == "mixtral") ReadExperts(fields, "num_local_experts", config);
  if (model_type == "qwen3_moe")
    ReadExperts(fields, fields.Has("num_local_experts") ? "num_local_experts" : "num_experts", config);
  if (model_type == "qwen2_moe") {
    ReadExperts(fields, "num_experts", config);
    config.attention_bias = fields.Bool("qkv_bias").value_or(true);
  }
}

void ReadLayerConfigs(const ConfigFields& fields, ModelConfig& config) {
  config.layers.assign(static_cast<size_t>(config.num_hidden_layers), {});
  ReadRopeLayers(fields, config);
  ReadExpertLayers(fields, config);
  ReadWindows(fields, config);
  if (config.model_type == "gemma3n_text") ReadGemma3nLayers(fields, config);
  if (config.model_type == "gemma4_text") ReadGemma4Layers(fields, config);
}

}  // namespace vllm
