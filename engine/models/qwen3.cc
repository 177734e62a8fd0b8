// Qwen3ForCausalLM (arXiv 2505.09388): Llama with an RMS norm on each query and key head. The sparse layers of
// Qwen3MoeForCausalLM have experts.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Qwen3Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention.qk_norm.kind = QkNormKind::kHead;
    if (config.layers[i].is_moe) layer.moe = BaseMoeSpec(config, layer.mlp);
  }
  return spec;
}

}  // namespace vllm
