// DeepseekV2ForCausalLM (DeepSeek-V2, arXiv 2405.04434), DeepseekV3ForCausalLM (DeepSeek-V3, arXiv 2412.19437) and
// Glm4MoeLiteForCausalLM (GLM-4.7-Flash): Llama with multi-head latent attention, and with experts and shared experts
// after the first layers. DeepSeek-V2 scores its experts by a softmax, the others by a sigmoid plus a bias.
#include <cmath>

#include "engine/layers/attention/rotary_embedding.h"
#include "engine/models/architecture_specs.h"

namespace vllm {

namespace {

// YaRN's attention scale multiplies both queries and keys, except for the part that RotaryEmbedding applies.
double ScoreScale(const ModelConfig& config) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(config.qk_nope_head_dim + config.qk_rope_head_dim));
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind != RopeScaling::Kind::kYarn || !scaling.mscale_all_dim) return scale;
  const double mscale = YarnMscale(scaling.factor, *scaling.mscale_all_dim);
  return scale * mscale * mscale;
}

MLASpec MakeMLASpec(const ModelConfig& config) {
  return {.q_lora_rank = config.q_lora_rank,
          .kv_lora_rank = config.kv_lora_rank,
          .qk_nope_head_dim = config.qk_nope_head_dim,
          .qk_rope_head_dim = config.qk_rope_head_dim,
          .v_head_dim = config.v_head_dim,
          .has_bias = config.attention_bias,
          .rotates_neighbors = config.rope_interleave,
          .scale = ScoreScale(config),
          // transformers uses this value regardless of rms_norm_eps.
          .norm_eps = 1e-6};
}

MoeSpec MakeMoeSpec(const ModelConfig& config, const MlpSpec& mlp) {
  MoeSpec moe = BaseMoeSpec(config, mlp);
  moe.expert.has_bias = false;
  if (config.model_type != "deepseek_v2") {
    moe.correction_bias = "gate.e_score_correction_bias";
    moe.routing.score = ExpertScore::kSigmoid;
    moe.routing.norm_eps = 1e-20;
  }
  // The weight of a single expert is its score.
  if (config.num_experts_per_tok == 1 && config.model_type == "deepseek_v2") moe.routing.norm_topk_prob = false;
  moe.shared_expert = mlp;
  moe.shared_expert->intermediate_size = config.shared_expert_intermediate_size;
  moe.shared_expert_prefix = "shared_experts.";
  moe.shared_expert_gate = "";
  return moe;
}

}  // namespace

DecoderSpec DeepseekSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.mla = MakeMLASpec(config);
    if (config.layers[i].is_moe) layer.moe = MakeMoeSpec(config, layer.mlp);
  }
  return spec;
}

}  // namespace vllm
