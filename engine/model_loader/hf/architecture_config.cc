#include "engine/model_loader/hf/architecture_config.h"

#include <limits>
#include <string>

#include "engine/config/escape.h"

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
  // The first checkpoints say "gelu" where they mean its tanh form.
  if (config.model_type == "gemma" && config.hidden_act == "gelu") config.hidden_act = "gelu_pytorch_tanh";
  if (fields.Bool("use_bidirectional_attention").value_or(false)) {
    fields.Refuse("use_bidirectional_attention", "only causal attention is supported");
  }
  if (config.model_type == "gemma") return;
  config.query_pre_attn_scalar = fields.PositiveDouble("query_pre_attn_scalar", kMaxMultiplier);
  // transformers reads the cap on scores in Gemma 2 only.
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
    fields.Refuse("add_cross_attention", "only decoders are supported");
  }
}

void ReadStableLm(const ConfigFields& fields, ModelConfig& config) {
  config.attention_bias = fields.Bool("use_qkv_bias").value_or(false);
  config.use_qk_norm = fields.Bool("qk_layernorm").value_or(false);
  config.use_parallel_residual = fields.Bool("use_parallel_residual").value_or(false);
}

void ReadFalcon(const ConfigFields& fields, ModelConfig& config) {
  if (fields.Bool("alibi").value_or(false)) fields.Refuse("alibi", "only rotary positions are supported");
  config.attention_bias = fields.Bool("bias").value_or(false);
  config.mlp_bias = config.attention_bias;
  const bool is_new = fields.Bool("new_decoder_architecture").value_or(false);
  config.use_parallel_residual = fields.Bool("parallel_attn").value_or(true);
  if (is_new && !config.use_parallel_residual) {
    fields.Refuse("parallel_attn", "the new decoder architecture is always parallel");
  }
  // Without new_decoder_architecture there is one norm, whatever the field says.
  if (is_new) config.num_parallel_norms = fields.Int("num_ln_in_parallel_attn", 1, 2).value_or(2);
}

void ReadExperts(const ConfigFields& fields, const char* count, ModelConfig& config) {
  config.num_experts = fields.RequiredInt(count, 1, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("num_experts_per_tok", 1, config.num_experts);
  config.moe_intermediate_size = fields.Int("moe_intermediate_size", 1, kMaxSize).value_or(config.intermediate_size);
  config.shared_expert_intermediate_size = fields.Int("shared_expert_intermediate_size", 1, kMaxSize).value_or(0);
  config.norm_topk_prob = fields.Bool("norm_topk_prob").value_or(false);
}

// Which layers see only a window, by the family's own rule where there is no list.
bool SlidesByRule(const ConfigFields& fields, const std::string& family, int64_t layer, const LayerConfig& config) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (family == "qwen2" || family == "qwen3") return layer >= fields.Int("max_window_layers", 0, kMax).value_or(28);
  if (family == "qwen2_moe") {
    return layer % 2 == 0 && layer < fields.Int("max_window_layers", 0, kMax).value_or(28);
  }
  if (family == "gemma2") return layer % 2 == 0;
  if (family == "gemma3_text") return (layer + 1) % fields.Int("sliding_window_pattern", 1, kMax).value_or(6) != 0;
  if (family == "smollm3") return !config.use_rope;
  return family == "mistral" || family == "mixtral" || family == "phi3" || family == "qwen3_moe";
}

void ReadRopeLayers(const ConfigFields& fields, ModelConfig& config) {
  if (config.model_type != "smollm3") return;
  const std::vector<int64_t> flags = fields.Ints("no_rope_layers", 0, 1);
  const int64_t interval = fields.Int("no_rope_layer_interval", 1, kMaxSize).value_or(4);
  if (!flags.empty() && flags.size() < config.layers.size()) fields.Refuse("no_rope_layers", "too few layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    // The list's ones are the layers that have positions.
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

bool HasLayerTypes(const std::string& family) {
  for (const char* name : {"qwen2", "qwen3", "qwen2_moe", "gemma2", "gemma3_text", "smollm3"}) {
    if (family == name) return true;
  }
  return false;
}

void ReadWindows(const ConfigFields& fields, ModelConfig& config) {
  // Qwen2-MoE's files say 0 where they have none.
  std::optional<int64_t> window = fields.Int("sliding_window", config.model_type == "qwen2_moe" ? 0 : 1, kMaxSize);
  if (window == 0) window.reset();
  if (fields.Bool("use_sliding_window").value_or(true)) config.sliding_window = window;
  std::vector<std::string> types;
  if (HasLayerTypes(config.model_type)) types = fields.Strings("layer_types");
  if (!types.empty() && types.size() < config.layers.size()) fields.Refuse("layer_types", "too few layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    bool slides = false;
    if (types.empty()) {
      slides = SlidesByRule(fields, config.model_type, static_cast<int64_t>(i), config.layers[i]);
    } else if (types[i] == "sliding_attention") {
      slides = true;
    } else if (types[i] != "full_attention") {
      fields.Fail("layer_types",
                  "unknown kind, known are full_attention and sliding_attention (" + Escape(types[i], 60) + ")");
    }
    if (slides) config.layers[i].sliding_window = config.sliding_window.value_or(0);
    config.layers[i].use_local_rope = slides && config.rope_local_theta.has_value();
  }
}

}  // namespace

void ReadArchitectureConfig(const ConfigFields& fields, ModelConfig& config) {
  const std::string& family = config.model_type;
  if (family == "gemma" || family == "gemma2" || family == "gemma3_text") ReadGemma(fields, config);
  if (family == "granite") ReadGranite(fields, config);
  if (family == "opt") ReadOpt(fields, config);
  if (family == "gpt2") ReadGpt2(fields, config);
  if (family == "stablelm") ReadStableLm(fields, config);
  if (family == "falcon") ReadFalcon(fields, config);
  if (family == "mixtral") ReadExperts(fields, "num_local_experts", config);
  if (family == "qwen3_moe")
    ReadExperts(fields, fields.Has("num_local_experts") ? "num_local_experts" : "num_experts", config);
  if (family == "qwen2_moe") {
    ReadExperts(fields, "num_experts", config);
    config.attention_bias = fields.Bool("qkv_bias").value_or(true);
  }
}

void ReadLayerConfigs(const ConfigFields& fields, ModelConfig& config) {
  config.layers.assign(static_cast<size_t>(config.num_hidden_layers), {});
  ReadRopeLayers(fields, config);
  ReadExpertLayers(fields, config);
  ReadWindows(fields, config);
}

}  // namespace vllm
