// GlmForCausalLM (GLM-4-9B, arXiv 2406.12793): Llama with biases on q, k and v, gate and up in one matrix, and a
// rotation of neighboring dimensions in half of each head. Glm4ForCausalLM (GLM-4-0414) also has norms after the
// blocks. Glm4MoeForCausalLM (GLM-4.5, arXiv 2508.06471): Llama with a partial rotation, an optional norm on each query
// and key head, and the experts of DeepSeek-V3 after the first layers.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GlmSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.o_bias = false;
    layer.attention.rotates_neighbors = true;
    layer.mlp.gate_up_proj = "gate_up_proj";
  }
  return spec;
}

DecoderSpec Glm4Spec(const ModelConfig& config) {
  DecoderSpec spec = GlmSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.out_norm = "post_self_attn_layernorm";
    layer.mlp_block.out_norm = "post_mlp_layernorm";
  }
  return spec;
}

DecoderSpec Glm4MoeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention.o_bias = false;
    if (config.use_qk_norm) layer.attention.qk_norm.kind = QkNormKind::kHead;
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
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
