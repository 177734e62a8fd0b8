// Olmo2ForCausalLM (arXiv 2501.00656): Llama with norms after the blocks instead of before them. One norm covers all
// query heads, and another covers all key heads.
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

}  // namespace vllm
