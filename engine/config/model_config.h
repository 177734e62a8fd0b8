// ModelConfig: the validated configuration of a decoder model, with vLLM's field names. Required sizes are positive,
// and all sizes are so small that the product of any two fits into int64. model_loader reads it from config.json or a
// GGUF file, and flags override a few fields. After that it is read-only; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/pooler_config.h"
#include "engine/config/quantization_config.h"
#include "kernels/matrix/dtype.h"

namespace vllm {

// RoPE scaling, as in transformers' rope_scaling. Each kind ignores the fields that it does not need.
struct RopeScaling {
  enum class Kind : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope, kFactors, kProportional };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  int64_t original_max_position_embeddings = 0;
  // llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // yarn; attention_factor also applies to longrope
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
  bool truncate = true;
  // longrope: one divisor per frequency. short_factor applies if max_model_len is at most
  // original_max_position_embeddings, else long_factor. Kind::kFactors (a GGUF file's rope_freqs tensor) uses only
  // short_factor. An infinite divisor means that the pair of dimensions does not rotate.
  std::vector<double> short_factor;
  std::vector<double> long_factor;
  // proportional: the first `partial_rotary_factor` of the pairs of dimensions rotate, with the frequencies that they
  // have if all pairs rotate. The frequencies are divided by `factor`.
  double partial_rotary_factor = 1.0;
  // Phi-MoE: they replace attention_factor, and the one with the factors that apply is used.
  std::optional<double> short_mscale;
  std::optional<double> long_mscale;
};

// What mixes the tokens in a layer. kNone: the layer has only an MLP (Nemotron-H).
enum class LayerMixer : uint8_t { kAttention, kLinearAttention, kShortConv, kMamba2, kAttentionAndMamba2, kNone };

// Settings that may differ between layers.
struct LayerConfig {
  LayerMixer mixer = LayerMixer::kAttention;
  int64_t sliding_window = 0;   // tokens that a query attends to, including its own token; 0: no window
  bool use_rope = true;         // false in some layers of SmolLM3 and EXAONE 4
  bool use_local_rope = false;  // uses rope_local_theta without scaling (sliding layers of Gemma 3 and OLMo 3)
  bool has_mlp = true;          // false in Mamba-2, and in the layers of Nemotron-H that mix tokens
  bool is_moe = false;
  int64_t intermediate_size = 0;  // 0: ModelConfig::intermediate_size
  // Gemma 4: the layer whose K and V this layer reads instead of having its own; below 0: its own.
  int64_t kv_source_layer = -1;
  // Gemma 3n: gates below mean + gate_cutoff * standard deviation become 0; see MlpSpec.
  std::optional<double> gate_cutoff;
  bool values_are_keys = false;  // Gemma 4: there is no v_proj; values are the keys before norm and rotation

  bool HasAttention() const { return mixer == LayerMixer::kAttention || mixer == LayerMixer::kAttentionAndMamba2; }
};

// The multipliers of Falcon-H1, with the names of transformers.
struct FalconH1Multipliers {
  double attention_in = 1.0;
  double attention_out = 1.0;
  double key = 1.0;
  double ssm_in = 1.0;
  double ssm_out = 1.0;
  std::array<double, 5> ssm = {1.0, 1.0, 1.0, 1.0, 1.0};  // of z, x, B, C and dt
  double mlp_gate = 1.0;
  double mlp_down = 1.0;
  double lm_head = 1.0;
};

struct ModelConfig {
  std::string model;         // the name or path that the user gave; the path of the files until the application sets it
  std::string directory;     // contains the model's files
  std::string gguf_file;     // the first GGUF file; empty for other formats
  std::string architecture;  // "LlamaForCausalLM"
  std::string model_type;    // "llama"

  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;  // 0: the model has no attention (Mamba-2), and then also no KV heads and head_dim
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
  std::vector<LayerConfig> layers;  // [num_hidden_layers]

  // Fields in which other architectures differ from Llama. The default values describe Llama.
  int64_t rotary_dim = 0;  // leading dimensions of a head that are rotated (partial_rotary_factor); 0: head_dim
  std::optional<double> rope_local_theta;
  // Gemma 4: heads of the layers without a sliding window. 0: head_dim and num_key_value_heads.
  int64_t global_head_dim = 0;
  int64_t num_global_key_value_heads = 0;
  double norm_offset = 0.0;  // added to norm weights: 1 in Gemma's Hugging Face checkpoints, 0 in GGUF
  bool norm_affine = true;   // layer norms have weights; false in some OPT models
  std::optional<double> query_pre_attn_scalar;
  std::optional<double> attn_logit_softcapping;
  std::optional<double> final_logit_softcapping;
  double embedding_multiplier = 1.0;  // Granite, like the next three fields; GPT-2 also uses attention_multiplier
  double residual_multiplier = 1.0;
  std::optional<double> attention_multiplier;
  double logits_scaling = 1.0;
  int64_t word_embed_proj_dim = 0;               // OPT; 0: hidden_size
  bool do_layer_norm_before = true;              // OPT
  bool remove_final_norm = false;                // OPT
  bool use_parallel_residual = false;            // StableLM, Falcon, GPT-NeoX
  bool fused_qkv_by_head = false;                // GPT-NeoX: each head has its rows of q, k and v in turn; not in GGUF
  int64_t num_parallel_norms = 1;                // Falcon: 2 if parallel attention and MLP have one norm each
  bool use_qk_norm = false;                      // read only by architectures in which QK norm is optional
  bool scale_attn_by_inverse_layer_idx = false;  // GPT-2
  bool conv1d_weights = false;  // linear weights are stored as [in, out], as in GPT-2's Conv1D; never in GGUF
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;
  int64_t shared_expert_intermediate_size = 0;
  int64_t moe_latent_size = 0;   // Nemotron 3: width of the experts' inputs and outputs; 0: hidden_size
  bool use_expert_bias = false;  // LFM2-MoE: experts are chosen by their scores plus a bias
  bool norm_topk_prob = false;
  // Linear attention (Qwen3-Next, Qwen3.5), with the names of transformers.
  int64_t linear_conv_kernel_dim = 0;
  int64_t linear_key_head_dim = 0;
  int64_t linear_value_head_dim = 0;
  int64_t linear_num_key_heads = 0;
  int64_t linear_num_value_heads = 0;
  bool linear_tiled_value_heads = false;  // see GatedDeltaNetSpec::tiled_value_heads
  // Mamba-2, with the names that transformers has in Granite 4 and Falcon-H1.
  int64_t mamba_n_heads = 0;
  int64_t mamba_d_head = 0;
  int64_t mamba_n_groups = 1;
  int64_t mamba_d_state = 0;
  int64_t mamba_d_conv = 0;
  bool mamba_conv_bias = true;
  bool mamba_proj_bias = false;  // of in_proj
  bool mamba_out_proj_bias = false;
  bool mamba_rms_norm = true;  // false in most Falcon-H1 models, like the next field
  bool mamba_norm_before_gate = false;
  double mamba_min_dt = 0.0;  // Nemotron-H: time_step_min
  FalconH1Multipliers falcon_h1;
  // Multi-head latent attention (DeepSeek, GLM-4.7-Flash), with the names of transformers. num_key_value_heads is then
  // 1 and head_dim the sum of the next two.
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t kv_lora_rank = 0;      // 0: the model has other attention
  int64_t q_lora_rank = 0;       // 0: queries are not compressed
  bool rope_interleave = true;   // pairs of neighboring dimensions rotate
  int64_t conv_l_cache = 0;      // LFM2: the taps of its convolutions
  bool conv_bias = false;        // LFM2
  int64_t altup_num_inputs = 0;  // Gemma 3n, like the next three fields: number of streams of hidden states
  int64_t altup_active_idx = 0;
  bool altup_correct_scale = false;
  int64_t laurel_rank = 0;
  int64_t hidden_size_per_layer_input = 0;  // Gemma 4: each layer has an embedding of this size; 0: none
  int64_t vocab_size_per_layer_input = 0;   // number of rows of the table of these embeddings
  double swiglu_alpha = 1.702;              // gpt-oss, like swiglu_limit
  double swiglu_limit = 7.0;
  double routed_scaling_factor = 1.0;  // multiplies the weights of the chosen experts
  int64_t n_group = 1;                 // experts are chosen only from the topk_group best of n_group groups
  int64_t topk_group = 1;
  double moe_norm_min = 0.0;         // ERNIE: the least sum by which the weights of the chosen experts are divided
  double router_jitter_noise = 0.0;  // Phi-MoE
  bool attention_out_bias = false;   // Seed-OSS
  bool lm_head_bias = false;
  std::optional<double> clip_qkv;              // OLMoE
  std::optional<double> llama_4_scaling_beta;  // Ministral 3: queries grow with the logarithm of the position
  // Prefix of the text model's tensor names in a multimodal checkpoint, such as "language_model.".
  std::string weight_prefix;
  QuantizationConfig quantization;
  bool has_block_weights = false;  // the model is a GGUF file with block-quantized matrices

  // Encoders (BERT), and decoders whose attention is not causal.
  bool is_encoder = false;      // a token attends to later ones too, so there is no KV cache and no generated text
  bool can_generate = true;     // the model has an output projection
  int64_t type_vocab_size = 0;  // token types that have an embedding; 0: none
  int64_t position_offset = 0;  // RoBERTa: the row of position 0 in the table of positions
  bool norm_bias = true;        // ModernBERT: its layer norms have a bias
  bool gated_mlp = true;        // NomicBERT
  PoolerConfig pooler;

  std::optional<int32_t> bos_token_id;
  // The EOS token, then further tokens that stop a request. From config.json and generation_config.json, or from GGUF
  // metadata.
  std::vector<int32_t> eos_token_ids;

  kernels::DType checkpoint_dtype = kernels::DType::kFloat32;  // config.json's, else float32; GGUF: from tensor types
  kernels::DType dtype = kernels::DType::kFloat32;  // type of floating-point weights; KV cache: see DefaultKVDType
  int64_t max_model_len = 0;                        // maximum number of tokens in prompt plus output

  // The heads and the width of the MLP of a layer.
  int64_t HeadDim(const LayerConfig& layer) const {
    return layer.sliding_window == 0 && global_head_dim > 0 ? global_head_dim : head_dim;
  }
  int64_t NumKVHeads(const LayerConfig& layer) const {
    return layer.sliding_window == 0 && num_global_key_value_heads > 0 ? num_global_key_value_heads
                                                                       : num_key_value_heads;
  }
  // KVCacheLayout::head_dim and value_dim of the layer: with latent attention, the KV cache has one vector per token,
  // whose first elements are also the values.
  int64_t CachedHeadDim(const LayerConfig& layer) const {
    return kv_lora_rank > 0 ? kv_lora_rank + qk_rope_head_dim : HeadDim(layer);
  }
  int64_t CachedValueDim() const { return kv_lora_rank; }
  // Returns the floats of the layer's recurrent state, on all ranks; 0: it has none.
  int64_t RecurrentStateFloats(const LayerConfig& layer) const {
    switch (layer.mixer) {
      case LayerMixer::kAttention:
      case LayerMixer::kNone:
        break;
      case LayerMixer::kLinearAttention:
        return (linear_conv_kernel_dim - 1) *
                   (2 * linear_num_key_heads * linear_key_head_dim + linear_num_value_heads * linear_value_head_dim) +
               linear_num_value_heads * linear_key_head_dim * linear_value_head_dim;
      case LayerMixer::kShortConv:
        return (conv_l_cache - 1) * hidden_size;
      case LayerMixer::kMamba2:
      case LayerMixer::kAttentionAndMamba2:
        return (mamba_d_conv - 1) * (mamba_n_heads * mamba_d_head + 2 * mamba_n_groups * mamba_d_state) +
               mamba_n_heads * mamba_d_head * mamba_d_state;
    }
    return 0;
  }
  int64_t IntermediateSize(const LayerConfig& layer) const {
    return layer.intermediate_size > 0 ? layer.intermediate_size : intermediate_size;
  }
};

}  // namespace vllm
