// Qwen3NextForCausalLM and Qwen3_5ForCausalLM (Qwen3-Next, Qwen3.5 to 3.8): three of four layers have Gated DeltaNet
// instead of attention. Attention rotates a part of each head and multiplies its output by a gate. Qwen3-Next and
// Qwen3_5MoeForCausalLM have experts and a shared expert in their sparse layers.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Qwen3NextSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  const bool is_next = config.model_type == "qwen3_next";
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention.qk_norm.kind = QkNormKind::kHead;
    layer.attention.output_gate = true;
    if (config.layers[i].mixer == LayerMixer::kLinearAttention) {
      layer.attention_block.prefix = "linear_attn.";
      layer.gated_delta_net = {.fused_qkvz = is_next && config.gguf_file.empty(),
                               .fused_ba = is_next,
                               .num_key_heads = config.linear_num_key_heads,
                               .num_value_heads = config.linear_num_value_heads,
                               .key_dim = config.linear_key_head_dim,
                               .value_dim = config.linear_value_head_dim,
                               .num_taps = config.linear_conv_kernel_dim,
                               .tiled_value_heads = config.linear_tiled_value_heads,
                               .activation = layer.mlp.activation,
                               .norm_eps = config.rms_norm_eps};
    }
    if (!config.layers[i].is_moe) continue;
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->shared_expert = layer.mlp;
    layer.moe->shared_expert->intermediate_size = config.shared_expert_intermediate_size;
  }
  return spec;
}

}  // namespace vllm
