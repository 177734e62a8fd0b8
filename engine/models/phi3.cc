// Phi3ForCausalLM (arXiv 2404.14219; Phi-3, Phi-3.5, Phi-4, Phi-4-mini): Llama with q, k and v in one matrix, gate and
// up in another. Long-context checkpoints use LongRoPE.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Phi3Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.layout = QkvLayout::kFused;
    layer.mlp.gate_up_proj = "gate_up_proj";
  }
  return spec;
}

}  // namespace vllm
