// MixtralForCausalLM (arXiv 2401.04088): Mistral with experts in every layer. The weights of a token's experts sum
// to 1. PhimoeForCausalLM (Phi-3.5-MoE, arXiv 2404.14219) has layer norms, and another rule for choosing experts.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec MixtralSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.mlp_block.prefix = "block_sparse_moe.";
    layer.mlp.gate_proj = "w1";
    layer.mlp.down_proj = "w2";
    layer.mlp.up_proj = "w3";
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->routing.norm_topk_prob = true;
  }
  return spec;
}

DecoderSpec PhimoeSpec(const ModelConfig& config) {
  DecoderSpec spec = MixtralSpec(config);
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.moe->routing.score = ExpertScore::kSparseMixer;
    layer.moe->routing.jitter_noise = config.router_jitter_noise;
  }
  return spec;
}

}  // namespace vllm
