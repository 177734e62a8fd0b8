// GPT2LMHeadModel (OpenAI's GPT-2): learned positions, layer norms before the blocks, a fused QKV matrix, and a
// two-matrix MLP. Its checkpoints store matrices as [in, out] (ModelConfig::conv1d_weights).
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec Gpt2Spec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"transformer.", ""};
  spec.embed_tokens = "wte";
  spec.embed_positions = "wpe";
  spec.layers = "h.";
  spec.final_norm = "ln_f";
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention_block = {"attn.", "ln_1", "", ""};
    layer.attention.layout = QkvLayout::kFused;
    layer.attention.qkv_proj = "c_attn";
    layer.attention.o_proj = "c_proj";
    layer.attention.qkv_bias = true;
    layer.attention.o_bias = true;
    layer.attention.rotary_table = -1;
    if (config.scale_attn_by_inverse_layer_idx) layer.attention.scale /= static_cast<double>(i + 1);
    layer.mlp_block = {"mlp.", "ln_2", "", ""};
    layer.mlp.gate_proj = "";
    layer.mlp.up_proj = "c_fc";
    layer.mlp.down_proj = "c_proj";
    layer.mlp.has_bias = true;
  }
  return spec;
}

}  // namespace vllm
