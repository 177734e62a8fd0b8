// Encoders, whose attention is not causal: BERT (arXiv 1810.04805) and its relatives RoBERTa, XLM-R, ELECTRA and
// DistilBERT, with learned positions and norms after the residual additions; MPNet (arXiv 2004.09297), which adds a
// bias for the distance of two tokens, as JinaBERT (arXiv 2310.19923) does in place of positions; NomicBERT (arXiv
// 2402.01613) and GTE (arXiv 2407.19669), which also have rotary positions and a gated MLP; ModernBERT (arXiv
// 2412.13663), with norms before the blocks and layers whose window is on both sides of a token.
#include "engine/models/architecture_specs.h"

namespace vllm {

namespace {

// BERT's embeddings, and norms after the residual additions.
DecoderSpec PostNormSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.embed_tokens = "embeddings.word_embeddings";
  if (config.type_vocab_size > 0) spec.embed_token_types = "embeddings.token_type_embeddings";
  spec.embed_norm = "embeddings.LayerNorm";
  spec.layers = "encoder.layer.";
  spec.final_norm = "";
  spec.norm = {NormSpec::Kind::kLayer, config.rms_norm_eps, 0.0, true, true};
  return spec;
}

void SetLearnedPositions(const ModelConfig& config, DecoderSpec& spec) {
  spec.embed_positions = "embeddings.position_embeddings";
  spec.position_offset = config.position_offset;
  for (LayerSpec& layer : spec.layer) layer.attention.rotary_table = -1;
}

void SetProjections(const char* q, const char* k, const char* v, const char* o, AttentionSpec& attention) {
  attention.q_proj = q;
  attention.k_proj = k;
  attention.v_proj = v;
  attention.o_proj = o;
}

void SetPlainMlp(const char* up, const char* down, MlpSpec& mlp) {
  mlp.gate_proj = "";
  mlp.up_proj = up;
  mlp.down_proj = down;
  mlp.has_bias = true;
}

}  // namespace

DecoderSpec BertSpec(const ModelConfig& config) {
  DecoderSpec spec = PostNormSpec(config);
  spec.prefixes = {"", "bert.", "roberta.", "electra."};
  SetLearnedPositions(config, spec);
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block = {"attention.", "", "", "attention.output.LayerNorm"};
    SetProjections("self.query", "self.key", "self.value", "output.dense", layer.attention);
    layer.attention.qkv_bias = true;
    layer.attention.o_bias = true;
    layer.mlp_block = {"", "", "", "output.LayerNorm"};
    SetPlainMlp("intermediate.dense", "output.dense", layer.mlp);
  }
  return spec;
}

DecoderSpec DistilBertSpec(const ModelConfig& config) {
  DecoderSpec spec = BertSpec(config);
  spec.prefixes = {"", "distilbert."};
  spec.layers = "transformer.layer.";
  spec.norm.eps = 1e-12;  // not in config.json
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block = {"attention.", "", "", "sa_layer_norm"};
    SetProjections("q_lin", "k_lin", "v_lin", "out_lin", layer.attention);
    layer.mlp_block = {"ffn.", "", "", "output_layer_norm"};
    SetPlainMlp("lin1", "lin2", layer.mlp);
  }
  return spec;
}

DecoderSpec MPNetSpec(const ModelConfig& config) {
  DecoderSpec spec = BertSpec(config);
  spec.prefixes = {"", "mpnet."};
  spec.relative_bias = "encoder.relative_attention_bias.weight";
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block = {"attention.attn.", "", "", "attention.LayerNorm"};
    SetProjections("q", "k", "v", "o", layer.attention);
  }
  return spec;
}

DecoderSpec JinaBertSpec(const ModelConfig& config) {
  DecoderSpec spec = BertSpec(config);
  spec.embed_positions = "";
  for (LayerSpec& layer : spec.layer) {
    layer.attention.alibi = true;
    layer.mlp_block = {"mlp.", "", "", "mlp.layernorm"};
    layer.mlp = BaseDecoderSpec(config).layer.front().mlp;
    layer.mlp.gate_up_proj = "gated_layers";
    layer.mlp.down_proj = "wo";
    layer.mlp.has_down_bias = true;
    if (!config.use_qk_norm) continue;
    // jina-embeddings-v2-base-code
    layer.attention_block = {"attention.", "", "", "layer_norm_1", "attention.output.LayerNorm"};
    layer.attention.qk_norm = {QkNormKind::kWhole, "self.layer_norm_q", "self.layer_norm_k", spec.norm};
    layer.mlp.up_comes_first = true;
    // GGUF files of both kinds have the same names.
    if (!config.gguf_file.empty()) continue;
    layer.mlp_block.sum_norm = "layer_norm_2";
    layer.mlp.gate_up_proj = "up_gated_layer";
    layer.mlp.down_proj = "down_layer";
  }
  return spec;
}

DecoderSpec NomicBertSpec(const ModelConfig& config) {
  DecoderSpec spec = PostNormSpec(config);
  spec.prefixes = {"", "bert.", "nomic_bert."};
  spec.embed_norm = "emb_ln";
  spec.layers = "encoder.layers.";
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    layer.attention_block = {"attn.", "", "", "norm1"};
    layer.attention.layout = QkvLayout::kFused;
    layer.attention.qkv_proj = "Wqkv";
    layer.attention.o_proj = "out_proj";
    layer.mlp_block = {"mlp.", "", "", "norm2"};
    layer.mlp.gate_proj = config.gated_mlp ? "fc12" : "";
    layer.mlp.up_proj = config.gated_mlp ? "fc11" : "fc1";
    layer.mlp.down_proj = "fc2";
    if (!config.layers[i].is_moe) continue;
    // nomic-embed-text-v2-moe (arXiv 2502.07972)
    layer.moe = BaseMoeSpec(config, layer.mlp);
    layer.moe->router = "router.layer";
    layer.moe->layout = ExpertLayout::kMegaBlocks;
    layer.moe->expert.has_bias = false;
    layer.moe->output_bias = "experts.bias";
  }
  return spec;
}

DecoderSpec GteSpec(const ModelConfig& config) {
  DecoderSpec spec = PostNormSpec(config);
  spec.prefixes = {"", "new.", "gte."};
  for (LayerSpec& layer : spec.layer) {
    layer.attention_block = {"attention.", "", "", "attn_ln"};
    layer.attention.layout = QkvLayout::kFused;
    layer.attention.qkv_bias = true;
    layer.attention.o_bias = true;
    layer.mlp_block = {"mlp.", "", "", "mlp_ln"};
    layer.mlp.gate_up_proj = "up_gate_proj";
    layer.mlp.up_comes_first = true;
    layer.mlp.has_down_bias = true;
  }
  return spec;
}

DecoderSpec ModernBertSpec(const ModelConfig& config) {
  DecoderSpec spec = BaseDecoderSpec(config);
  spec.prefixes = {"", "model."};
  spec.embed_tokens = "embeddings.tok_embeddings";
  spec.embed_norm = "embeddings.norm";
  spec.final_norm = "final_norm";
  spec.norm = {NormSpec::Kind::kLayer, config.rms_norm_eps, 0.0, true, config.norm_bias};
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    LayerSpec& layer = spec.layer[i];
    // The norm of the embeddings is that of the first layer's input.
    layer.attention_block = {"attn.", i == 0 ? "" : "attn_norm", "", ""};
    layer.attention.layout = QkvLayout::kFused;
    layer.attention.qkv_proj = "Wqkv";
    layer.attention.o_proj = "Wo";
    layer.mlp_block = {"mlp.", "mlp_norm", "", ""};
    layer.mlp.gate_up_proj = "Wi";
    layer.mlp.down_proj = "Wo";
  }
  return spec;
}

}  // namespace vllm
