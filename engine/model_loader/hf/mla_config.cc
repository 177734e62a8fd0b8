#include "engine/model_loader/hf/mla_config.h"

#include <string>

namespace vllm {

namespace {

constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxRank = int64_t{1} << 16;

}  // namespace

bool HasMLA(std::string_view model_type) {
  return model_type == "deepseek_v2" || model_type == "deepseek_v3" || model_type == "glm4_moe_lite";
}

void ReadMLASizes(const ConfigFields& fields, ModelConfig& config) {
  // Every head has its own keys and values, computed from the same latent vector. The KV cache has one head.
  const char* kv_heads = "num_key_value_heads";
  if (fields.Has(kv_heads) &&
      fields.RequiredInt(kv_heads, 1, config.num_attention_heads) != config.num_attention_heads) {
    fields.Reject(kv_heads, "not num_attention_heads " + std::to_string(config.num_attention_heads));
  }
  config.num_key_value_heads = 1;
  config.qk_nope_head_dim = fields.RequiredInt("qk_nope_head_dim", 1, kMaxHeadDim);
  config.qk_rope_head_dim = fields.RequiredInt("qk_rope_head_dim", 2, kMaxHeadDim);
  if (config.qk_rope_head_dim % 2 != 0) fields.Reject("qk_rope_head_dim", "not even");
  config.v_head_dim = fields.RequiredInt("v_head_dim", 1, kMaxHeadDim);
  config.kv_lora_rank = fields.RequiredInt("kv_lora_rank", 1, kMaxRank);
  config.q_lora_rank = fields.Int("q_lora_rank", 1, kMaxRank).value_or(0);
  config.head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim;
  // DeepSeek-V2 has no such field.
  if (config.model_type != "deepseek_v2") config.rope_interleave = fields.Bool("rope_interleave").value_or(true);
}

}  // namespace vllm
