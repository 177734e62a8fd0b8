#include "engine/models/decoder/decoder_spec.h"

#include <cmath>

namespace vllm {

namespace {

double ScoreScale(const ModelConfig& config) {
  if (config.attention_multiplier) return *config.attention_multiplier;
  return 1.0 / std::sqrt(config.query_pre_attn_scalar.value_or(static_cast<double>(config.head_dim)));
}

}  // namespace

double RoundTo(kernels::DType dtype, double value) {
  const auto rounded = static_cast<float>(value);
  switch (dtype) {
    case kernels::DType::kBFloat16:
      return kernels::BFloat16ToFloat(kernels::FloatToBFloat16(rounded));
    case kernels::DType::kFloat16:
      return kernels::Float16ToFloat(kernels::FloatToFloat16(rounded));
    case kernels::DType::kFloat32:
      break;
  }
  return rounded;
}

DecoderSpec BaseDecoderSpec(const ModelConfig& config) {
  DecoderSpec spec;
  if (!config.weight_prefix.empty()) {
    // Older checkpoints have "language_model.model.embed_tokens", newer ones "model.language_model.embed_tokens".
    spec.prefixes = {config.weight_prefix + "model.", "model." + config.weight_prefix, "model."};
  }
  // Without an output projection, the names may begin at the decoder.
  if (!config.can_generate) spec.prefixes = {"model.", ""};
  spec.norm = {NormSpec::Kind::kRms, config.rms_norm_eps, config.norm_offset, true, true};
  spec.embedding_scale = config.embedding_multiplier;
  spec.residual_scale = config.residual_multiplier;
  spec.logits_scale = 1.0 / config.logits_scaling;
  spec.logits_softcap = config.final_logit_softcapping.value_or(0.0);
  LayerSpec layer;
  layer.attention.qkv_bias = config.attention_bias;
  layer.attention.o_bias = config.attention_bias;
  layer.attention.qk_norm.norm = spec.norm;
  layer.attention.scale = ScoreScale(config);
  layer.attention.softcap = config.attn_logit_softcapping.value_or(0.0);
  layer.mlp.has_bias = config.mlp_bias;
  layer.mlp.activation = ActivationByName(config);
  for (const LayerConfig& layer_config : config.layers) {
    layer.attention.head_dim = config.HeadDim(layer_config);
    layer.attention.num_kv_heads = config.NumKVHeads(layer_config);
    layer.attention.kv_source_layer = layer_config.kv_source_layer;
    layer.attention.values_are_keys = layer_config.values_are_keys;
    layer.attention.sliding_window = layer_config.sliding_window;
    if (config.is_encoder) {
      const int64_t window = layer_config.sliding_window;
      layer.attention.look_ahead = window > 0 ? window - 1 : kernels::kLookAheadAll;
    }
    layer.mlp.intermediate_size = config.IntermediateSize(layer_config);
    layer.mlp.gate_cutoff = layer_config.gate_cutoff;
    layer.attention.rotary_table = !layer_config.use_rope ? -1 : layer_config.use_local_rope ? 1 : 0;
    layer.has_attention_block = layer_config.mixer != LayerMixer::kNone;
    layer.has_mlp_block = layer_config.has_mlp;
    spec.layer.push_back(layer);
  }
  return spec;
}

MoeSpec BaseMoeSpec(const ModelConfig& config, const MlpSpec& mlp) {
  MoeSpec moe;
  moe.expert = mlp;
  moe.expert.intermediate_size = config.moe_intermediate_size;
  moe.routing.num_experts = config.num_experts;
  moe.routing.num_experts_per_tok = config.num_experts_per_tok;
  moe.routing.norm_topk_prob = config.norm_topk_prob;
  moe.routing.routed_scaling_factor = config.routed_scaling_factor;
  moe.routing.n_group = config.n_group;
  moe.routing.topk_group = config.topk_group;
  moe.latent_size = config.moe_latent_size;
  return moe;
}

Mamba2Spec BaseMamba2Spec(const ModelConfig& config) {
  return {.num_heads = config.mamba_n_heads,
          .head_dim = config.mamba_d_head,
          .num_groups = config.mamba_n_groups,
          .state_size = config.mamba_d_state,
          .num_taps = config.mamba_d_conv,
          .conv_bias = config.mamba_conv_bias,
          .in_bias = config.mamba_proj_bias,
          .out_bias = config.mamba_out_proj_bias,
          .activation = ActivationByName(config),
          .min_dt = config.mamba_min_dt,
          .has_norm = config.mamba_rms_norm,
          .norm_before_gate = config.mamba_norm_before_gate,
          .norm_eps = config.rms_norm_eps,
          .multipliers = config.falcon_h1.ssm};
}

}  // namespace vllm
