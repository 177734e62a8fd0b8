#include "engine/model_loader/hf/hf_defaults.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace vllm {
namespace {

struct ModelTypeDefaults {
  std::string_view model_type;
  std::string_view fields;
};

constexpr ModelTypeDefaults kModelTypes[] = {
    {"mistral", R"({"num_key_value_heads": 8, "sliding_window": 4096})"},
    {"mixtral", R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_local_experts": 8,
                    "num_experts_per_tok": 2})"},
    {"qwen2", R"({"use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})"},
    {"qwen2_moe", R"({"use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "qkv_bias": true,
                      "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                      "shared_expert_intermediate_size": 5632})"},
    {"qwen3", R"({"head_dim": 128, "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})"},
    {"qwen3_moe", R"({"use_sliding_window": false, "sliding_window": 4096, "num_experts_per_tok": 8,
                      "moe_intermediate_size": 768})"},
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

constexpr ModelTypeDefaults kTextSizes[] = {
    {"llama", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "max_position_embeddings": 2048})"},
    {"mistral", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                    "num_attention_heads": 32, "max_position_embeddings": 131072})"},
    {"qwen2", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768})"},
    {"qwen3", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768})"},
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
