// StableLmForCausalLM (StableLM 2, StableLM 3B): Llama with layer norms and partial rotation. The config can add biases
// on q, k and v, a separate norm for each head, and attention and MLP in parallel.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec StableLmSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.attention.o_bias = false;
    if (config.use_qk_norm) {
      layer.attention.qk_norm = {QkNormKind::kEachHead, "q_layernorm", "k_layernorm", spec.norm};
      layer.attention.qk_norm.norm.has_bias = false;
    }
    if (!config.use_parallel_residual) continue;
    layer.parallel = true;
    layer.mlp_block.in_norm = "";
  }
  return spec;
}

}  // namespace vllm
