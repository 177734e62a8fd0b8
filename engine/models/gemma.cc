// Gemma (arXiv 2403.08295, 2408.00118, 2503.19786): Llama with a scaled embedding and norm weights stored as offsets
// from 1. Gemma 2 and 3 also normalize each block's output before the residual addition. Gemma 2 soft-caps scores and
// logits. Gemma 3 normalizes queries and keys, and its sliding-window layers have a separate rotary base.
#include <cmath>

#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GemmaSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  // transformers rounds the factor to the dtype of the weights.
  spec.embedding_scale = RoundTo(config.dtype, std::sqrt(static_cast<double>(config.hidden_size)));
  return spec;
}

DecoderSpec Gemma2Spec(const ModelConfig& config) {
  DecoderSpec spec = GemmaSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.out_norm = "post_attention_layernorm";
    layer.mlp_block.in_norm = "pre_feedforward_layernorm";
    layer.mlp_block.out_norm = "post_feedforward_layernorm";
  }
  return spec;
}

DecoderSpec Gemma3Spec(const ModelConfig& config) {
  DecoderSpec spec = Gemma2Spec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.qk_norm.kind = QkNormKind::kHead;
  return spec;
}

}  // namespace vllm
