// The tensor names of the GGUF architectures that are encoders; see tensor_names.h. Constants; any thread.
#pragma once

#include <array>

#include "engine/model_loader/gguf/architecture.h"

namespace vllm {

inline constexpr std::array<GgufTensorName, 6> kBertOuter = {{
    {"token_embd", "embeddings.word_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"cls", "classifier.dense"},
    {"cls.output", "classifier.out_proj"},
}};

inline constexpr std::array<GgufTensorName, 8> kBertLayer = {{
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
}};

inline constexpr std::array<GgufTensorName, 3> kJinaBertOuter = {{
    {"token_embd", "embeddings.word_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"token_types", "embeddings.token_type_embeddings"},
}};

// attn_q_norm, attn_k_norm and attn_norm_2 are in jina-embeddings-v2-base-code.
inline constexpr std::array<GgufTensorName, 11> kJinaBertLayer = {{
    {"attn_q", "attention.self.query"},
    {"attn_q_norm", "attention.self.layer_norm_q"},
    {"attn_k_norm", "attention.self.layer_norm_k"},
    {"attn_norm_2", "layer_norm_1"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "mlp.gated_layers"},
    {"ffn_down", "mlp.wo"},
    {"layer_output_norm", "mlp.layernorm"},
}};

inline constexpr std::array<GgufTensorName, 3> kNomicBertOuter = {{
    {"token_embd", "embeddings.word_embeddings"},
    {"token_embd_norm", "emb_ln"},
    {"token_types", "embeddings.token_type_embeddings"},
}};

inline constexpr std::array<GgufTensorName, 7> kNomicBertLayer = {{
    {"attn_qkv", "attn.Wqkv"},
    {"attn_output", "attn.out_proj"},
    {"attn_output_norm", "norm1"},
    {"ffn_gate", "mlp.fc12"},
    {"ffn_up", "mlp.fc11"},
    {"ffn_down", "mlp.fc2"},
    {"layer_output_norm", "norm2"},
}};

inline constexpr std::array<GgufTensorName, 7> kNomicBertMoeLayer = {{
    {"attn_qkv", "attn.Wqkv"},
    {"attn_output", "attn.out_proj"},
    {"attn_output_norm", "norm1"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
    {"ffn_gate_inp", "mlp.router.layer"},
    {"layer_output_norm", "norm2"},
}};

inline constexpr std::array<GgufTensorName, 2> kNomicBertMoeExperts = {{
    {"ffn_up_exps", "mlp.experts.{}.fc1"},
    {"ffn_down_exps", "mlp.experts.{}.fc2"},
}};

inline constexpr std::array<GgufTensorName, 6> kModernBertOuter = {{
    {"token_embd", "embeddings.tok_embeddings"},
    {"token_embd_norm", "embeddings.norm"},
    {"output_norm", "final_norm"},
    {"cls", "head.dense"},
    {"cls.norm", "head.norm"},
    {"cls.output", "classifier"},
}};

inline constexpr std::array<GgufTensorName, 6> kModernBertLayer = {{
    {"attn_norm", "attn_norm"},
    {"attn_qkv", "attn.Wqkv"},
    {"attn_output", "attn.Wo"},
    {"ffn_norm", "mlp_norm"},
    {"ffn_up", "mlp.Wi"},
    {"ffn_down", "mlp.Wo"},
}};

inline constexpr std::array<GgufTensorName, 4> kGemmaEmbeddingOuter = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"dense_2", "dense_2"},
    {"dense_3", "dense_3"},
}};

}  // namespace vllm
