// What config.json says of a decoder, in vLLM's names, after validation: every size is positive and small enough that
// the products of any two fit int64. Written once by model_loader/hf_config, then read by anyone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace vllm {

// Rotary scaling as transformers' rope_scaling: which kind, and the fields that kind reads.
struct RopeScaling {
  enum class Kind : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  int64_t original_max_position_embeddings = 0;
  // llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
  bool truncate = true;
};

struct ModelConfig {
  std::string model;         // as the user named it
  std::string folder;        // where its files are
  std::string architecture;  // "LlamaForCausalLM"
  std::string model_type;    // "llama"

  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 0;
  std::string hidden_act = "silu";
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  std::optional<int64_t> sliding_window;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;

  std::optional<int32_t> bos_token_id;
  // config.json's and generation_config.json's together; the first is the EOS, all of them stop a request.
  std::vector<int32_t> eos_token_ids;

  DType checkpoint_dtype = DType::kFloat32;  // config.json's torch_dtype
  DType dtype = DType::kFloat32;             // what weights and KV are computed in
  int64_t max_model_len = 0;                 // tokens, prompt and output together
};

}  // namespace vllm
