#include "engine/model_loader/gguf/architecture.h"

#include <array>

namespace vllm {
namespace {

using Name = GgufTensorName;

constexpr std::array<Name, 3> kOuter = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};

constexpr std::array<Name, 4> kGpt2Outer = {{
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
}};

constexpr std::array<Name, 11> kLlamaLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

constexpr std::array<Name, 13> kGemmaLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

constexpr std::array<Name, 11> kOlmo2Layer = {{
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

constexpr std::array<Name, 11> kStableLmLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_layernorm.norms.{}"},
    {"attn_k_norm", "self_attn.k_layernorm.norms.{}"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

constexpr std::array<Name, 6> kPhi3Layer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

constexpr std::array<Name, 6> kGpt2Layer = {{
    {"attn_norm", "ln_1"},
    {"attn_qkv", "attn.c_attn"},
    {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},
    {"ffn_up", "mlp.c_fc"},
    {"ffn_down", "mlp.c_proj"},
}};

constexpr std::array<Name, 7> kMixtralLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "block_sparse_moe.gate"},
}};

constexpr std::array<Name, 16> kQwenMoeLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
}};

constexpr std::array<Name, 8> kGptOssLayer = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_sinks", "self_attn.sinks"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "mlp.router"},
}};

constexpr std::array<Name, 3> kMixtralExperts = {{
    {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1"},
    {"ffn_down_exps", "block_sparse_moe.experts.{}.w2"},
    {"ffn_up_exps", "block_sparse_moe.experts.{}.w3"},
}};

constexpr std::array<Name, 3> kQwenExperts = {{
    {"ffn_gate_exps", "mlp.experts.{}.gate_proj"},
    {"ffn_down_exps", "mlp.experts.{}.down_proj"},
    {"ffn_up_exps", "mlp.experts.{}.up_proj"},
}};

constexpr std::array<GgufArchitecture, 17> kArchitectures = {{
    {.name = "llama",
     .hf_architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .hidden_act = "silu",
     .interleaved_rope = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "llama",
     .hf_architecture = "MixtralForCausalLM",
     .model_type = "mixtral",
     .hidden_act = "silu",
     .interleaved_rope = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kMixtralLayer,
     .experts = kMixtralExperts},
    {.name = "qwen2",
     .hf_architecture = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "qwen2moe",
     .hf_architecture = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kQwenMoeLayer,
     .experts = kQwenExperts},
    {.name = "qwen3",
     .hf_architecture = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "qwen3moe",
     .hf_architecture = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kQwenMoeLayer,
     .experts = kQwenExperts},
    {.name = "gemma",
     .hf_architecture = "GemmaForCausalLM",
     .model_type = "gemma",
     .hidden_act = "gelu_pytorch_tanh",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "gemma2",
     .hf_architecture = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .hidden_act = "gelu_pytorch_tanh",
     .sliding_window_pattern = 2,
     .default_sliding_window = 4096,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kGemmaLayer,
     .experts = {}},
    {.name = "gemma3",
     .hf_architecture = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .hidden_act = "gelu_pytorch_tanh",
     .sliding_window_pattern = 6,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kGemmaLayer,
     .experts = {}},
    {.name = "phi3",
     .hf_architecture = "Phi3ForCausalLM",
     .model_type = "phi3",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kPhi3Layer,
     .experts = {}},
    {.name = "gpt-oss",
     .hf_architecture = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .hidden_act = "silu",
     .expert_biases = true,
     .sliding_window_pattern = 2,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kGptOssLayer,
     .experts = kQwenExperts},
    {.name = "gpt2",
     .hf_architecture = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .hidden_act = "gelu_new",
     .layer_norm = true,
     .layer_prefix = "transformer.h.",
     .outer = kGpt2Outer,
     .layer = kGpt2Layer,
     .experts = {}},
    {.name = "olmo2",
     .hf_architecture = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .hidden_act = "silu",
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kOlmo2Layer,
     .experts = {}},
    {.name = "granite",
     .hf_architecture = "GraniteForCausalLM",
     .model_type = "granite",
     .hidden_act = "silu",
     .interleaved_rope = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "smollm3",
     .hf_architecture = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .hidden_act = "silu",
     .interleaved_rope = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
    {.name = "stablelm",
     .hf_architecture = "StableLmForCausalLM",
     .model_type = "stablelm",
     .hidden_act = "silu",
     .layer_norm = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kStableLmLayer,
     .experts = {}},
    {.name = "arcee",
     .hf_architecture = "ArceeForCausalLM",
     .model_type = "arcee",
     .hidden_act = "relu2",
     .interleaved_rope = true,
     .layer_prefix = "model.layers.",
     .outer = kOuter,
     .layer = kLlamaLayer,
     .experts = {}},
}};

}  // namespace

const GgufArchitecture* FindGgufArchitecture(std::string_view architecture, bool has_experts) {
  const GgufArchitecture* found = nullptr;
  for (const GgufArchitecture& candidate : kArchitectures) {
    if (candidate.name != architecture) continue;
    found = &candidate;
    if (candidate.experts.empty() != has_experts) break;
  }
  return found;
}

std::string KnownGgufArchitectures() {
  std::string known;
  for (size_t i = 0; i < kArchitectures.size(); ++i) {
    if (i > 0 && kArchitectures[i].name == kArchitectures[i - 1].name) continue;
    known += (known.empty() ? "" : ", ") + std::string(kArchitectures[i].name);
  }
  return known;
}

}  // namespace vllm
