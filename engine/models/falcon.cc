// FalconForCausalLM (arXiv 2311.16867): layer norms, a two-matrix MLP with GELU, a fused QKV matrix grouped by KV head,
// and in most configs attention and MLP in parallel. Loading rejects configs with ALiBi instead of rotary positions.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec FalconSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"transformer.", ""};
  spec.embed_tokens = "word_embeddings";
  spec.layers = "h.";
  spec.final_norm = "ln_f";
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.prefix = "self_attention.";
    layer.attention.layout = QkvLayout::kFusedByKVHead;
    layer.attention.qkv_proj = "query_key_value";
    layer.attention.o_proj = "dense";
    layer.mlp.gate_proj = "";
    layer.mlp.up_proj = "dense_h_to_4h";
    layer.mlp.down_proj = "dense_4h_to_h";
    layer.parallel = config.use_parallel_residual;
    if (!layer.parallel) continue;
    layer.mlp_block.in_norm = "";
    if (config.num_parallel_norms == 2) {
      layer.attention_block.in_norm = "ln_attn";
      layer.mlp_block.in_norm = "ln_mlp";
    }
  }
  return spec;
}

}  // namespace vllm
