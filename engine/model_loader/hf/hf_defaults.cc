#include "engine/model_loader/hf/hf_defaults.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace vllm {
namespace {

struct ModelTypeDefaults {
  std::string_view model_type;
  std::string_view fields;
};

constexpr char kQwen2VL[] = R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6,
                                "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 80})";

constexpr ModelTypeDefaults kModelTypes[] = {
    {"mistral", R"({"num_key_value_heads": 8, "sliding_window": 4096})"},
    {"mixtral", R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_local_experts": 8,
                    "num_experts_per_tok": 2})"},
    {"qwen2", R"({"use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})"},
    {"qwen2_moe", R"({"use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "qkv_bias": true,
                      "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                      "shared_expert_intermediate_size": 5632})"},
    {"qwen3", R"({"head_dim": 128, "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})"},
    {"qwen2_vl", kQwen2VL},
    {"qwen2_vl_text", kQwen2VL},
    {"qwen2_5_vl", kQwen2VL},
    {"qwen2_5_vl_text", kQwen2VL},
    {"qwen3_vl_text", R"({"head_dim": 128, "rope_theta": 5e5})"},
    {"qwen3_moe", R"({"use_sliding_window": false, "sliding_window": 4096, "num_experts_per_tok": 8,
                      "moe_intermediate_size": 768})"},
    {"qwen3_next", R"({"num_key_value_heads": 2, "head_dim": 256, "partial_rotary_factor": 0.25,
                       "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                       "linear_num_key_heads": 16, "linear_num_value_heads": 32, "moe_intermediate_size": 512,
                       "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "num_experts": 512,
                       "norm_topk_prob": true})"},
    {"qwen3_5_text", R"({"num_key_value_heads": 4, "head_dim": 256, "partial_rotary_factor": 0.25,
                         "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                         "linear_num_key_heads": 16, "linear_num_value_heads": 32})"},
    {"qwen3_5_moe_text", R"({"num_key_value_heads": 2, "head_dim": 256, "partial_rotary_factor": 0.25,
                             "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                             "linear_num_key_heads": 16, "linear_num_value_heads": 32, "moe_intermediate_size": 512,
                             "shared_expert_intermediate_size": 512, "num_experts_per_tok": 8, "num_experts": 256})"},
    {"lfm2", R"({"num_key_value_heads": 8, "norm_eps": 1e-5, "tie_word_embeddings": true, "conv_L_cache": 3,
                 "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": true})"},
    {"lfm2_moe", R"({"num_key_value_heads": 8, "norm_eps": 1e-5, "tie_word_embeddings": true, "conv_L_cache": 3,
                     "rope_theta": 1e6, "max_position_embeddings": 128000, "moe_intermediate_size": 1792,
                     "num_experts": 32, "num_experts_per_tok": 4, "num_dense_layers": 2, "norm_topk_prob": true})"},
    {"mamba2", R"({"layer_norm_epsilon": 1e-5, "num_heads": 128, "head_dim": 64, "n_groups": 8, "state_size": 128,
                   "conv_kernel": 4, "expand": 2})"},
    {"falcon_h1", R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
                      "mamba_d_ssm": 1024, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256,
                      "mamba_d_conv": 4, "mamba_expand": 2})"},
    {"nemotron_h", R"({"num_key_value_heads": 8, "head_dim": 128, "layer_norm_epsilon": 1e-5,
                       "max_position_embeddings": 4096, "intermediate_size": 21504, "mamba_num_heads": 128,
                       "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
                       "time_step_min": 1e-3, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
                       "moe_intermediate_size": 7688, "moe_shared_expert_intermediate_size": 7688, "n_group": 1,
                       "topk_group": 1})"},
    {"gemma", R"({"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true})"},
    {"gemma2", R"({"head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
                   "sliding_window": 4096, "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
                   "final_logit_softcapping": 30.0})"},
    {"gemma3_text", R"({"head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
                        "sliding_window": 4096, "query_pre_attn_scalar": 256, "rope_theta": 1e6,
                        "rope_local_base_freq": 1e4})"},
    {"gemma3n_text", R"({"num_key_value_heads": 2, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
                         "tie_word_embeddings": true, "sliding_window": 512, "rope_theta": 1e6,
                         "rope_local_base_freq": 1e4, "final_logit_softcapping": 30.0,
                         "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
                         "num_kv_shared_layers": 15, "laurel_rank": 64, "altup_num_inputs": 4, "altup_active_idx": 0,
                         "altup_correct_scale": true})"},
    {"gemma4_text", R"({"num_key_value_heads": 4, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
                        "tie_word_embeddings": true, "sliding_window": 512, "hidden_size_per_layer_input": 256,
                        "vocab_size_per_layer_input": 262144})"},
    {"gpt_oss", R"({"num_key_value_heads": 8, "head_dim": 64, "rms_norm_eps": 1e-5, "rope_theta": 1.5e5,
                    "sliding_window": 128, "attention_bias": true, "num_experts_per_tok": 4, "max_position_embeddings": 131072,
                    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                     "truncate": false, "original_max_position_embeddings": 4096}})"},
    {"olmoe", R"({"rms_norm_eps": 1e-5, "num_experts_per_tok": 8})"},
    {"olmo3", R"({"rms_norm_eps": 1e-5, "rope_theta": 5e5, "sliding_window": 4096})"},
    {"seed_oss", R"({"num_key_value_heads": 8, "head_dim": 128, "attention_bias": true})"},
    {"starcoder2", R"({"num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5,
                       "use_bias": true, "max_position_embeddings": 4096, "tie_word_embeddings": true})"},
    {"ernie4_5", R"({"num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
                     "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
    {"glm", R"({"num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1.5625e-7, "attention_bias": true,
                "max_position_embeddings": 131072, "partial_rotary_factor": 0.5})"},
    {"glm4", R"({"num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1.5625e-7, "attention_bias": true,
                "max_position_embeddings": 131072, "partial_rotary_factor": 0.5})"},
    {"ministral3",
     R"({"num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5, "max_position_embeddings": 262144,
                       "rope_scaling": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "mscale": 1.0,
                                        "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384,
                                        "llama_4_scaling_beta": 0.1}})"},
    {"exaone4", R"({"num_key_value_heads": 32, "rms_norm_eps": 1e-5, "sliding_window": 4096,
                    "sliding_window_pattern": 4})"},
    {"hunyuan_v1_dense", R"({"rms_norm_eps": 1e-5})"},
    {"helium", R"({"num_key_value_heads": 20, "head_dim": 128, "rms_norm_eps": 1e-8, "rope_theta": 1e5,
                   "max_position_embeddings": 4096})"},
    {"nemotron", R"({"hidden_act": "relu2", "norm_eps": 1e-5, "max_position_embeddings": 4096,
                     "partial_rotary_factor": 0.5})"},
    {"ernie4_5_moe", R"({"num_key_value_heads": 4, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
                         "max_position_embeddings": 131072, "tie_word_embeddings": true, "moe_intermediate_size": 1536,
                         "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
                         "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_norm_min": 1e-12})"},
    {"glm4_moe", R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
                     "partial_rotary_factor": 0.5, "moe_intermediate_size": 1408, "num_experts_per_tok": 8,
                     "n_shared_experts": 1, "n_routed_experts": 128, "routed_scaling_factor": 1.0, "n_group": 1,
                     "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": true})"},
    {"deepseek_v2", R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                        "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "moe_intermediate_size": 1407,
                        "first_k_dense_replace": 0, "topk_method": "greedy", "max_position_embeddings": 2048})"},
    {"deepseek_v3", R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                        "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
                        "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "routed_scaling_factor": 2.5,
                        "n_group": 8, "topk_group": 4, "norm_topk_prob": true, "first_k_dense_replace": 3,
                        "max_position_embeddings": 4096})"},
    {"glm4_moe_lite", R"({"q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
                          "v_head_dim": 256, "n_routed_experts": 64, "n_shared_experts": 1,
                          "moe_intermediate_size": 1536, "num_experts_per_tok": 4, "routed_scaling_factor": 1.8,
                          "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "first_k_dense_replace": 1,
                          "rms_norm_eps": 1e-5, "max_position_embeddings": 202752})"},
    {"bailing_moe", R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 16384, "use_bias": true, "num_experts": 16,
                        "num_shared_experts": 0, "num_experts_per_tok": 2, "norm_topk_prob": true,
                        "first_k_dense_replace": 0})"},
    {"bailing_moe_v2", R"({"num_key_value_heads": 4, "head_dim": 128, "rope_theta": 6e5,
                           "max_position_embeddings": 32768, "use_qk_norm": true, "num_experts": 256,
                           "num_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
                           "moe_intermediate_size": 512, "first_k_dense_replace": 1, "norm_topk_prob": true})"},
    {"granitemoe", R"({"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"granitemoeshared", R"({"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"granitemoehybrid",
     R"({"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 1024,
         "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2})"},
    {"phimoe", R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "max_position_embeddings": 131072,
                   "num_local_experts": 16, "num_experts_per_tok": 2, "router_jitter_noise": 0.01})"},
    {"bert",
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"roberta",
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"xlm-roberta",
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"camembert",
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"electra",
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"mpnet", R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512})"},
    {"distilbert", R"({"hidden_act": "gelu", "max_position_embeddings": 512})"},
    {"modernbert", R"({"hidden_act": "gelu", "layer_norm_eps": 1e-5, "rope_theta": 1.6e5, "norm_bias": false,
                       "max_position_embeddings": 8192})"},
    {"nomic_bert", R"({"hidden_act": "silu", "layer_norm_eps": 1e-12, "rope_theta": 1e3, "type_vocab_size": 2,
                       "max_position_embeddings": 2048})"},
    {"gte", R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "rope_theta": 1.6e5, "type_vocab_size": 1,
                "max_position_embeddings": 8192})"},
    {"new", R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "rope_theta": 1.6e5, "type_vocab_size": 1,
                "max_position_embeddings": 8192})"},
    {"eurobert", R"({"rms_norm_eps": 1e-5, "rope_theta": 2.5e5, "max_position_embeddings": 8192})"},
    {"phi3", R"({"rms_norm_eps": 1e-5, "original_max_position_embeddings": 4096})"},
    {"smollm3", R"({"num_key_value_heads": 4, "rope_theta": 2e6, "use_sliding_window": false,
                    "tie_word_embeddings": true, "no_rope_layer_interval": 4})"},
    {"arcee", R"({"hidden_act": "relu2", "rms_norm_eps": 1e-5})"},
    {"olmo2", R"({"rms_norm_eps": 1e-5})"},
    {"granite", R"({"attention_multiplier": 1.0})"},
    {"stablelm", R"({"num_key_value_heads": 32, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25})"},
    {"falcon", R"({"layer_norm_epsilon": 1e-5, "activation": "gelu", "multi_query": true, "parallel_attn": true,
                   "max_position_embeddings": 2048, "tie_word_embeddings": true})"},
    {"gpt2", R"({"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "n_positions": 1024,
                 "tie_word_embeddings": true})"},
    {"opt", R"({"activation_function": "relu", "max_position_embeddings": 2048, "tie_word_embeddings": true})"},
};

constexpr char kQwen2VLSizes[] = R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
                                     "num_hidden_layers": 80, "num_attention_heads": 64,
                                     "max_position_embeddings": 32768})";

constexpr ModelTypeDefaults kTextSizes[] = {
    {"llama", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "max_position_embeddings": 2048})"},
    {"mistral", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                    "num_attention_heads": 32, "max_position_embeddings": 131072})"},
    {"qwen2", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768})"},
    {"qwen3", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768})"},
    {"qwen2_vl_text", kQwen2VLSizes},
    {"qwen2_5_vl_text", kQwen2VLSizes},
    {"qwen3_vl_text", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
                          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                          "max_position_embeddings": 128000})"},
    {"qwen3_5_text", R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288,
                         "num_hidden_layers": 32, "num_attention_heads": 16, "max_position_embeddings": 32768})"},
    {"qwen3_5_moe_text", R"({"vocab_size": 248320, "hidden_size": 2048, "num_hidden_layers": 40,
                             "num_attention_heads": 16, "max_position_embeddings": 32768})"},
    {"gemma3_text", R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
                        "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 131072})"},
    {"gemma3n_text", R"({"vocab_size": 262400, "hidden_size": 2048, "intermediate_size": 16384,
                         "num_hidden_layers": 35, "num_attention_heads": 8, "max_position_embeddings": 32768})"},
    {"gemma4_text", R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
                        "num_attention_heads": 8, "max_position_embeddings": 131072})"},
};

template <size_t kCount>
void AddFrom(const ModelTypeDefaults (&table)[kCount], const std::string& model_type, nlohmann::json& config) {
  for (const ModelTypeDefaults& defaults : table) {
    if (defaults.model_type != model_type) continue;
    const nlohmann::json fields = nlohmann::json::parse(defaults.fields);
    for (const auto& [name, value] : fields.items()) {
      if (!config.contains(name)) config[name] = value;
    }
  }
}

}  // namespace

void AddModelTypeDefaults(const std::string& model_type, nlohmann::json& config) {
  AddFrom(kModelTypes, model_type, config);
}

void AddTextSizeDefaults(const std::string& model_type, nlohmann::json& config) {
  AddFrom(kTextSizes, model_type, config);
}

}  // namespace vllm
