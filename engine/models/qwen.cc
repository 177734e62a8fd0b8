// Qwen2ForCausalLM (Qwen2, Qwen2.5): Llama with biases on q, k and v. The sparse layers of Qwen2MoeForCausalLM have
// routed experts and one expert that all tokens share. Qwen3ForCausalLM (arXiv 2505.09388): Llama with an RMS norm on
// each query and key head. The sparse layers of Qwen3MoeForCausalLM have experts.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Qwen2Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.qkv_bias = true;
    layer.attention.o_bias = false;
  }
  return spec;
}

DecoderSpec Qwen2MoeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention.o_bias = false;
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->shared_expert = layer.mlp;
    layer.moe->shared_expert->intermediate_size = config.shared_expert_intermediate_size;
  }
  return spec;
}

DecoderSpec Qwen3Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention.qk_norm.kind = QkNormKind::kHead;
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
    if (config.model_type == "qwen3_vl_moe_text") layer.moe->layout = ExpertLayout::kTransposed;
  }
  return spec;
}

}  // namespace vllm
