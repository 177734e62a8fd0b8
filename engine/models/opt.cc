// OPTForCausalLM (arXiv 2205.01068): learned positions (position 0 is row 2 of the table), layer norms before the
// blocks, and a two-matrix MLP with ReLU. OPT-350m has its norms after the residual additions, and an embedding that is
// narrower than hidden_size.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec OptSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"model.decoder.", "decoder."};
  spec.embed_positions = "embed_positions";
  spec.position_offset = 2;
  spec.norm.kind = NormSpec::Kind::kLayer;
  spec.norm.eps = 1e-5;  // PyTorch's default; config.json does not set it
  spec.norm.has_weight = config.norm_affine;
  spec.final_norm = config.do_layer_norm_before && !config.remove_final_norm ? "final_layer_norm" : "";
  if (config.word_embed_proj_dim > 0 && config.word_embed_proj_dim != config.hidden_size) {
    spec.project_in = "project_in";
    spec.project_out = "project_out";
  }
  for (LayerSpec& layer : spec.layer) {
    const std::string attention_norm = "self_attn_layer_norm";
    const std::string mlp_norm = "final_layer_norm";
    if (config.do_layer_norm_before) {
      layer.attention_block.in_norm = attention_norm;
      layer.mlp_block = {"", mlp_norm, "", ""};
    } else {
      layer.attention_block = {"self_attn.", "", "", attention_norm};
      layer.mlp_block = {"", "", "", mlp_norm};
    }
    layer.attention.o_proj = "out_proj";
    layer.attention.rotary_table = -1;
    layer.mlp.gate_proj = "";
    layer.mlp.up_proj = "fc1";
    layer.mlp.down_proj = "fc2";
  }
  return spec;
}

}  // namespace vllm
