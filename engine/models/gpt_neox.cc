// GPTNeoXForCausalLM (Black et al. 2022; Pythia): layer norms, a fused QKV matrix, a two-matrix MLP with GELU, partial
// rotation, and in most configs attention and MLP in parallel, each with its own norm. GGUF files have the rows of all
// queries first, then those of the keys and values.
#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GptNeoxSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"gpt_neox."};
  spec.embed_tokens = "embed_in";
  spec.final_norm = "final_layer_norm";
  spec.old_lm_head = "embed_out";
  spec.norm.kind = NormSpec::Kind::kLayer;
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.prefix = "attention.";
    layer.attention.layout = config.fused_qkv_by_head ? QkvLayout::kFusedByKVHead : QkvLayout::kFused;
    layer.attention.qkv_proj = "query_key_value";
    layer.attention.o_proj = "dense";
    layer.mlp.gate_proj = "";
    layer.mlp.up_proj = "dense_h_to_4h";
    layer.mlp.down_proj = "dense_4h_to_h";
    layer.mlp.has_bias = true;
    layer.parallel = config.use_parallel_residual;
  }
  return spec;
}

}  // namespace vllm
