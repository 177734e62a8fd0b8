#include "engine/model_loader/gguf/mla.h"

#include <algorithm>
#include <string>

namespace vllm {
namespace {

constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxRank = int64_t{1} << 16;

std::string Key(const char* name) { return std::string("deepseek2.") + name; }

}  // namespace

void ReadGgufMLASizes(const GgufMetadata& keys, ModelConfig& config) {
  const auto head_dim = [&](const char* name, const char* older_name) {
    const std::optional<int64_t> size = keys.Int(Key(name), 1, kMaxHeadDim);
    return size ? *size : keys.RequiredInt(Key(older_name), 1, kMaxHeadDim);
  };
  config.num_key_value_heads = 1;
  config.kv_lora_rank = keys.RequiredInt(Key("attention.kv_lora_rank"), 1, kMaxRank);
  config.q_lora_rank = keys.Int(Key("attention.q_lora_rank"), 0, kMaxRank).value_or(0);
  config.head_dim = head_dim("attention.key_length_mla", "attention.key_length");
  config.v_head_dim = head_dim("attention.value_length_mla", "attention.value_length");
  const std::string rope = Key("rope.dimension_count");
  config.qk_rope_head_dim = keys.RequiredInt(rope, 2, kMaxHeadDim);
  config.qk_nope_head_dim = config.head_dim - config.qk_rope_head_dim;
  if (config.qk_nope_head_dim < 1) {
    keys.Fail(rope, "not below the size of the keys " + std::to_string(config.head_dim) + " (" +
                        std::to_string(config.qk_rope_head_dim) + ")");
  }
}

void ReadGgufMLAExperts(const GgufFile& file, ModelConfig& config) {
  constexpr int64_t kSoftmax = 1, kSigmoid = 2;
  const GgufMetadata& keys = file.metadata();
  if (config.num_experts == 0) keys.Fail(Key("expert_count"), "models without experts are not supported");
  // Only experts that are scored by a sigmoid have a correction bias. Files without the key exist of both kinds.
  const bool has_bias = std::any_of(file.tensors().begin(), file.tensors().end(), [](const GgufTensor* tensor) {
    return tensor->name.find(".exp_probs_b") != std::string_view::npos;
  });
  const std::string gating = Key("expert_gating_func");
  const int64_t function = keys.Int(gating, 0, 16).value_or(has_bias ? kSigmoid : kSoftmax);
  if (function != kSoftmax && function != kSigmoid) keys.Fail(gating, "only softmax (1) and sigmoid (2) are supported");
  if (function == kSigmoid) {
    config.architecture = "DeepseekV3ForCausalLM";
    config.model_type = "deepseek_v3";
    return;
  }
  if (has_bias) keys.Fail(gating, "softmax (1) is not supported with exp_probs_b");
  if (config.norm_topk_prob && config.routed_scaling_factor != 1.0) {
    keys.Fail(Key("expert_weights_norm"), "true is supported with softmax only if expert_weights_scale is 1");
  }
}

}  // namespace vllm
