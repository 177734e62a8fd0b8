// Olmo2ForCausalLM (arXiv 2501.00656) and Olmo3ForCausalLM (arXiv 2512.13961, with sliding windows in most layers):
// Llama with norms after the blocks instead of before them. One norm covers all query heads, and another covers all key
// heads. OlmoeForCausalLM (arXiv 2409.02060) has the same norms of queries and keys, Llama's norms of blocks, and
// experts in every layer. Exaone4ForCausalLM (arXiv 2507.11407) has OLMo-2's norms of blocks and a norm for each query
// and key head.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Olmo2Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.in_norm = "";
    layer.attention_block.out_norm = "post_attention_layernorm";
    layer.mlp_block.in_norm = "";
    layer.mlp_block.out_norm = "post_feedforward_layernorm";
    layer.attention.qk_norm.kind = QkNormKind::kWhole;
  }
  return spec;
}

DecoderSpec OlmoeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.qk_norm.kind = QkNormKind::kWhole;
    layer.attention.clip_qkv = config.clip_qkv.value_or(0.0);
    layer.moe = BaseMoeSpec(config, layer.mlp);
  }
  return spec;
}

DecoderSpec Exaone4Spec(const ModelConfig& config) {
  DecoderSpec spec = Olmo2Spec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.qk_norm.kind = QkNormKind::kHead;
  return spec;
}

}  // namespace vllm
