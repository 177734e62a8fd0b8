// Families whose decoder differs from Llama's in a few fields.
#include "engine/models/architecture_specs.h"

namespace vllm {

// Arcee AFM: the MLP has no gate. By default its activation is squared ReLU (arXiv 2109.08668).
DecoderSpec ArceeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) layer.mlp.gate_proj = "";
  return spec;
}

// Nemotron-4 and Minitron (arXiv 2402.16819): layer norms to whose weights 1 is added, and an MLP without gate.
DecoderSpec NemotronSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) layer.mlp.gate_proj = "";
  return spec;
}

// Seed-OSS: the bias of the output projection has its own switch.
DecoderSpec SeedOssSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.o_bias = config.attention_out_bias;
  return spec;
}

// StarCoder2 (arXiv 2402.19173): layer norms, and an MLP without gate.
DecoderSpec Starcoder2Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.mlp.gate_proj = "";
    layer.mlp.up_proj = "c_fc";
    layer.mlp.down_proj = "c_proj";
  }
  return spec;
}

// ERNIE 4.5: rotates neighboring dimensions.
DecoderSpec Ernie45Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.rotates_neighbors = true;
  return spec;
}

// ERNIE 4.5 MoE: experts in most layers, chosen by probability plus a bias, and an expert that all tokens share.
DecoderSpec Ernie45MoeSpec(const ModelConfig& config) {
  DecoderSpec spec = Ernie45Spec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->correction_bias = "moe_statics.e_score_correction_bias";
    layer.moe->routing.norm_topk_prob = true;
    layer.moe->routing.norm_min = config.moe_norm_min;
    if (config.shared_expert_intermediate_size == 0) continue;
    layer.moe->shared_expert = layer.mlp;
    layer.moe->shared_expert->intermediate_size = config.shared_expert_intermediate_size;
    layer.moe->shared_expert_prefix = "shared_experts.";
    layer.moe->shared_expert_gate = "";
  }
  return spec;
}

// Helium 1: rotates neighboring dimensions. The output projection has no bias.
DecoderSpec HeliumSpec(const ModelConfig& config) {
  DecoderSpec spec = Ernie45Spec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.o_bias = false;
  return spec;
}

// Hunyuan: an RMS norm on each query and key head, after the rotation.
DecoderSpec HunYuanDenseSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.qk_norm.kind = QkNormKind::kHead;
    layer.attention.qk_norm.q_norm = "query_layernorm";
    layer.attention.qk_norm.k_norm = "key_layernorm";
    layer.attention.qk_norm.after_rotation = true;
  }
  return spec;
}

// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini (arXiv 2404.14219): q, k and v in one matrix, gate and up in another.
// Long-context checkpoints use LongRoPE.
DecoderSpec Phi3Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.layout = QkvLayout::kFused;
    layer.mlp.gate_up_proj = "gate_up_proj";
  }
  return spec;
}

// StableLM 2 and StableLM 3B: layer norms and partial rotation. The config can add biases on q, k and v, a separate
// norm for each head, and attention and MLP in parallel.
DecoderSpec StableLmSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.attention.o_bias = false;
    if (config.use_qk_norm) {
      layer.attention.qk_norm = {QkNormKind::kEachHead, "q_layernorm", "k_layernorm", spec.norm};
      layer.attention.qk_norm.norm.has_bias = false;
    }
    if (!config.use_parallel_residual) continue;
    layer.parallel = true;
    layer.mlp_block.in_norm = "";
  }
  return spec;
}

}  // namespace vllm
