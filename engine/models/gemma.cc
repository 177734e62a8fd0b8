// Gemma (arXiv 2403.08295, 2408.00118, 2503.19786): Llama with a scaled embedding and norm weights stored as offsets
// from 1. Gemma 2 and 3 also normalize each block's output before the residual addition. Gemma 2 soft-caps scores and
// logits. Gemma 3 normalizes queries and keys, and its sliding-window layers have a separate rotary base. Gemma 4 has
// plain norm weights, normalizes values too, and does not scale the scores. Its full-attention layers have other heads
// than the sliding-window layers. Some of its models have per-layer inputs, layers that share K and V, or experts.
// Gemma 3n has these layers and inputs too, several streams of hidden states, and sparse gates.
#include <cmath>

#include "engine/models/architecture_specs.h"

namespace vllm {

DecoderSpec GemmaSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  // transformers rounds the factor to the dtype of the weights.
  spec.embedding_scale = RoundTo(config.dtype, std::sqrt(static_cast<double>(config.hidden_size)));
  return spec;
}

DecoderSpec Gemma2Spec(const ModelConfig& config) {
  DecoderSpec spec = GemmaSpec(config);
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block.out_norm = "post_attention_layernorm";
    layer.mlp_block.in_norm = "pre_feedforward_layernorm";
    layer.mlp_block.out_norm = "post_feedforward_layernorm";
  }
  return spec;
}

DecoderSpec Gemma3Spec(const ModelConfig& config) {
  DecoderSpec spec = Gemma2Spec(config);
  for (LayerSpec& layer : spec.layer) layer.attention.qk_norm.kind = QkNormKind::kHead;
  return spec;
}

namespace {

// Adds the per-layer inputs of Gemma 3n and 4.
void AddPerLayerInputs(const ModelConfig& config, DecoderSpec& spec) {
  const int64_t size = config.hidden_size_per_layer_input;
  PerLayerInputsSpec& inputs = spec.per_layer_inputs.emplace();
  inputs.size = size;
  inputs.num_layers = static_cast<int64_t>(spec.layer.size());
  inputs.vocab_size = config.vocab_size_per_layer_input;
  inputs.projection_scale = 1.0 / std::sqrt(static_cast<double>(config.hidden_size));
  inputs.table_scale = RoundTo(config.dtype, std::sqrt(static_cast<double>(size)));
  inputs.sum_scale = std::sqrt(0.5);
  inputs.norm = spec.norm;
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    PerLayerInputBlockSpec& block = spec.layer[i].per_layer_input.emplace();
    block.size = size;
    block.offset = static_cast<int64_t>(i) * size;
    block.stride = inputs.total_size();
    block.activation = spec.layer[i].mlp.activation;
    block.norm = spec.norm;
  }
}

}  // namespace

DecoderSpec Gemma3nSpec(const ModelConfig& config) {
  DecoderSpec spec = Gemma3Spec(config);
  AddPerLayerInputs(config, spec);
  // transformers rounds these factors to the dtype of the weights, unlike those of Gemma 4.
  spec.per_layer_inputs->projection_scale = RoundTo(config.dtype, spec.per_layer_inputs->projection_scale);
  spec.per_layer_inputs->sum_scale = RoundTo(config.dtype, spec.per_layer_inputs->sum_scale);
  spec.alt_up_streams.emplace().num_streams = config.altup_num_inputs;
  for (LayerSpec& layer : spec.layer) {
    layer.attention.scale = 1.0;
    layer.attention.has_v_norm = true;
    AltUpSpec& alt_up = layer.alt_up.emplace();
    alt_up.num_streams = config.altup_num_inputs;
    alt_up.active_stream = config.altup_active_idx;
    alt_up.scales_output = config.altup_correct_scale;
    alt_up.norm = spec.norm;
    LaurelSpec& laurel = layer.laurel.emplace();
    laurel.rank = config.laurel_rank;
    laurel.norm = spec.norm;
  }
  return spec;
}

DecoderSpec Gemma4Spec(const ModelConfig& config) {
  DecoderSpec spec = Gemma3Spec(config);
  if (config.hidden_size_per_layer_input > 0) AddPerLayerInputs(config, spec);
  for (LayerSpec& layer : spec.layer) {
    layer.attention.scale = 1.0;
    layer.attention.has_v_norm = true;
    layer.layer_scalar = "layer_scalar";
    if (config.num_experts == 0) continue;
    MlpWithExpertsSpec& experts = layer.parallel_experts.emplace();
    experts.norm = spec.norm;
    experts.moe = BaseMoeSpec(config, layer.mlp);
    experts.moe.router = "router.proj";
    experts.moe.router_scale = "router.scale";
    experts.moe.router_norm_eps = config.rms_norm_eps;
    experts.moe.expert_scale = "router.per_expert_scale";
  }
  return spec;
}

}  // namespace vllm
