// BailingMoeForCausalLM (Ling-lite, arXiv 2503.05139): Llama with q, k and v in one matrix, and with experts and shared
// experts after the first layers. BailingMoeV2ForCausalLM (Ling 2.0, arXiv 2510.22115) also has a norm on each query
// and key head and a partial rotation, and chooses experts as DeepSeek-V3 does.
#include "engine/models/architecture_specs.h"

namespace vllm {

namespace {

AttentionSpec MakeAttention(const ModelConfig& config, AttentionSpec attention) {
  // GGUF files have separate matrices, or their reader splits the fused one.
  if (config.gguf_file.empty()) attention.layout = QkvLayout::kFused;
  attention.qkv_proj = "query_key_value";
  attention.o_proj = "dense";
  attention.o_bias = config.attention_out_bias;
  if (!config.use_qk_norm) return attention;
  attention.qk_norm.kind = QkNormKind::kHead;
  attention.qk_norm.q_norm = "query_layernorm";
  attention.qk_norm.k_norm = "key_layernorm";
  return attention;
}

MoeSpec MakeMoe(const ModelConfig& config, const MlpSpec& mlp) {
  MoeSpec moe = BaseMoeSpec(config, mlp);
  // The weight of a single expert is its score.
  moe.routing.norm_topk_prob = config.norm_topk_prob && config.num_experts_per_tok > 1;
  if (config.model_type == "bailing_moe_v2") {
    moe.correction_bias = "gate.expert_bias";
    moe.routing.score = ExpertScore::kSigmoid;
    moe.routing.norm_eps = 1e-20;
  }
  if (config.shared_expert_intermediate_size == 0) return moe;
  moe.shared_expert = mlp;
  moe.shared_expert->intermediate_size = config.shared_expert_intermediate_size;
  moe.shared_expert_prefix = "shared_experts.";
  moe.shared_expert_gate = "";
  return moe;
}

}  // namespace

DecoderSpec BailingMoeSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.embed_tokens = "word_embeddings";
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention_block.prefix = "attention.";
    layer.attention = MakeAttention(config, layer.attention);
    if (config.layers[i].is_moe) layer.moe = MakeMoe(config, layer.mlp);
  }
  return spec;
}

}  // namespace vllm
