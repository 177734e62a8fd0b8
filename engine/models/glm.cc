// GlmForCausalLM (GLM-4-9B, arXiv 2406.12793): Llama with biases on q, k and v, gate and up in one matrix, and a
// rotation of neighboring dimensions in half of each head. Glm4ForCausalLM (GLM-4-0414) also has norms after the
// blocks.
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

}  // namespace vllm
