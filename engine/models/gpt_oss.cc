// GptOssForCausalLM (arXiv 2508.10925): biases on all projections, attention sinks, a sliding window in every other
// layer, and experts with a clamped SwiGLU. The weights of the chosen experts are a softmax over their logits.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GptOssSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.sinks = "sinks";
    layer.mlp.has_bias = true;
    layer.mlp.clamped_swiglu = {config.swiglu_alpha, config.swiglu_limit};
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->router = "router";
    layer.moe->router_bias = true;
    layer.moe->routing.norm_topk_prob = true;
    layer.moe->layout = ExpertLayout::kGptOss;
  }
  return spec;
}

}  // namespace vllm
