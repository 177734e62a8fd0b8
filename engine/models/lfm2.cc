// Lfm2ForCausalLM (LFM2, LFM2.5; arXiv 2511.23404): most layers have a gated short convolution instead of attention. An
// RMS norm on each query and key head.
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
    if (config.layers[i].mixer != LayerMixer::kShortConv) continue;
    layer.attention_block.prefix = "conv.";
    layer.short_conv = {.num_taps = config.conv_l_cache, .has_bias = config.conv_bias};
  }
  return spec;
}

}  // namespace vllm
