// ArceeForCausalLM (Arcee's AFM): Llama with an MLP that has no gate and computes down_proj(act(up_proj x)). By default
// the activation is squared ReLU (arXiv 2109.08668).
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec ArceeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) layer.mlp.gate_proj = "";
  return spec;
}

}  // namespace vllm
