// GraniteMoeForCausalLM (Granite 3 MoE, PowerMoE), GraniteMoeSharedForCausalLM and GraniteMoeHybridForCausalLM (Granite
// 4): Granite with experts, an MLP that all tokens share, or both. The weights of the chosen experts are a softmax over
// their logits. Most layers of Granite 4's hybrid models have Mamba-2 instead of attention.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GraniteMoeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    if (config.layers[i].mixer == LayerMixer::kMamba2) {
      layer.attention_block.prefix = "mamba.";
      layer.mamba2 = BaseMamba2Spec(config);
    }
    MlpSpec shared = layer.mlp;
    shared.gate_up_proj = "input_linear";
    shared.down_proj = "output_linear";
    shared.intermediate_size = config.shared_expert_intermediate_size;
    if (config.num_experts == 0) {
      layer.mlp_block.prefix = "shared_mlp.";
      layer.mlp = shared;
      continue;
    }
    layer.mlp_block.prefix = "";
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->router = "block_sparse_moe.router.layer";
    layer.moe->routing.norm_topk_prob = true;
    layer.moe->experts = "block_sparse_moe.experts.";
    layer.moe->layout = ExpertLayout::kStacked;
    layer.moe->stacked_gate_up = "block_sparse_moe.input_linear";
    layer.moe->stacked_down = "block_sparse_moe.output_linear";
    if (config.shared_expert_intermediate_size == 0) continue;
    layer.moe->shared_expert = shared;
    layer.moe->shared_expert_prefix = "shared_mlp.";
    layer.moe->shared_expert_gate = "";
  }
  return spec;
}

}  // namespace vllm
