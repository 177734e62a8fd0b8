// Lfm2ForCausalLM (LFM2, LFM2.5; arXiv 2511.23404): most layers have a gated short convolution instead of attention. An
// RMS norm on each query and key head. Lfm2MoeForCausalLM also has experts in all but the first layers.
// Mamba2ForCausalLM (arXiv 2405.21060): every layer is a Mamba-2 mixer; there is no attention and no MLP.
// FalconH1ForCausalLM (arXiv 2507.22448): attention and Mamba-2 in parallel in every layer, with multipliers.
// NemotronHForCausalLM (arXiv 2504.03624, Nemotron 3): every layer is one Mamba-2 mixer, attention, MLP or mixture of
// experts.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Lfm2Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.final_norm = "embedding_norm";
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention_block.in_norm = "operator_norm";
    layer.attention.o_proj = "out_proj";
    layer.attention.qk_norm = {QkNormKind::kHead, "q_layernorm", "k_layernorm", spec.norm};
    layer.mlp_block = {"feed_forward.", "ffn_norm", "", ""};
    layer.mlp.gate_proj = "w1";
    layer.mlp.up_proj = "w3";
    layer.mlp.down_proj = "w2";
    if (config.layers[i].is_moe) {
      layer.moe = BaseMoeSpec(config, layer.mlp);
      layer.moe->routing.score = ExpertScore::kSigmoid;
      layer.moe->routing.norm_eps = 1e-6;
      if (config.use_expert_bias) layer.moe->correction_bias = "expert_bias";
    }
    if (config.layers[i].mixer != LayerMixer::kShortConv) continue;
    layer.attention_block.prefix = "conv.";
    layer.short_conv = {.num_taps = config.conv_l_cache, .has_bias = config.conv_bias};
  }
  return spec;
}

DecoderSpec Mamba2DecoderSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"backbone."};
  spec.embed_tokens = "embeddings";
  spec.old_embed_tokens = "embedding";  // transformers renames it, too
  spec.final_norm = "norm_f";
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block = {"mixer.", "norm", "", ""};
    layer.mamba2 = BaseMamba2Spec(config);
  }
  return spec;
}

DecoderSpec FalconH1Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  const FalconH1Multipliers& multipliers = config.falcon_h1;
  spec.final_norm = "final_layernorm";
  spec.logits_scale = multipliers.lm_head;
  for (LayerSpec& layer : spec.layer) {
    // The multiplier of the keys, because the scores are linear in them.
    layer.attention.scale *= multipliers.key;
    layer.mamba2 = BaseMamba2Spec(config);
    layer.parallel_mixer = {.attention_in = multipliers.attention_in,
                            .attention_out = multipliers.attention_out,
                            .mixer_in = multipliers.ssm_in,
                            .mixer_out = multipliers.ssm_out,
                            .mixer_prefix = "mamba."};
    layer.mlp_block = {"feed_forward.", "pre_ff_layernorm", "", ""};
    layer.mlp.gate_scale = multipliers.mlp_gate;
    layer.mlp.down_scale = multipliers.mlp_down;
  }
  return spec;
}

DecoderSpec NemotronHSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"backbone.", "model."};
  spec.embed_tokens = "embeddings";
  spec.final_norm = "norm_f";
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention_block = {"mixer.", "norm", "", ""};
    layer.mlp_block = layer.attention_block;
    layer.attention.qkv_bias = false;
    layer.attention.o_bias = false;
    layer.mlp.gate_proj = "";
    if (config.layers[i].mixer == LayerMixer::kMamba2) {
      layer.mamba2 = BaseMamba2Spec(config);
      layer.mamba2->activation = kernels::Activation::kSilu;
    }
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->expert.has_bias = false;
    layer.moe->latent_bias = layer.mlp.has_bias;
    layer.moe->correction_bias = "gate.e_score_correction_bias";
    layer.moe->routing.score = ExpertScore::kSigmoid;
    layer.moe->routing.norm_eps = 1e-20;
    layer.moe->shared_expert = layer.mlp;
    layer.moe->shared_expert->intermediate_size = config.shared_expert_intermediate_size;
    layer.moe->shared_expert_prefix = "shared_experts.";
    layer.moe->shared_expert_gate = "";
  }
  return spec;
}

}  // namespace vllm
