#include "engine/model_loader/gguf/rope.h"

#include <cstring>
#include <string>

#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

// Returns a divisor for each of `count` frequencies, or an empty vector if the tensor is missing.
std::vector<double> Factors(const GgufFile& file, std::string_view name, int64_t count) {
  const GgufTensor* tensor = file.Find(name);
  if (tensor == nullptr) return {};
  const std::string object = "tensor " + std::string(name);
  if (tensor->type->weight_type != kernels::WeightType::kFloat32 || tensor->shape != std::vector<int64_t>{count}) {
    file.metadata().Fail(object, "must have " + std::to_string(count) + " float32 values");
  }
  std::vector<double> factors;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    float factor = 0.0F;
    std::memcpy(&factor, tensor->data.data() + i * sizeof(float), sizeof(float));
    if (!(factor > 0.0F && factor <= kMaxFactor)) {
      file.metadata().Fail(object, "values must be above 0 and at most 1e6 (" + std::to_string(factor) + ")");
    }
    factors.push_back(factor);
  }
  return factors;
}

void ReadScaling(const GgufMetadata& keys, const std::string& prefix, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  const std::string type_key = prefix + "scaling.type";
  const std::string_view type = keys.String(type_key).value_or("none");
  // Files written before scaling.type existed have scale_linear instead, which means linear scaling.
  const std::optional<double> old_factor = keys.PositiveDouble(prefix + "scale_linear", kMaxFactor);
  const std::optional<double> factor = keys.PositiveDouble(prefix + "scaling.factor", kMaxFactor);
  if (type == "linear" || (type == "none" && old_factor)) {
    scaling.factor = factor.value_or(old_factor.value_or(1.0));
    if (scaling.factor != 1.0) scaling.kind = RopeScaling::Kind::kLinear;
  } else if (type == "yarn") {
    scaling.kind = RopeScaling::Kind::kYarn;
    if (!factor) keys.Fail(prefix + "scaling.factor", "missing");
    scaling.factor = *factor;
    scaling.original_max_position_embeddings =
        keys.Int(prefix + "scaling.original_context_length", 1, kMaxPositions).value_or(config.max_position_embeddings);
    scaling.beta_fast = keys.PositiveDouble(prefix + "scaling.yarn_beta_fast", kMaxFactor).value_or(scaling.beta_fast);
    scaling.beta_slow = keys.PositiveDouble(prefix + "scaling.yarn_beta_slow", kMaxFactor).value_or(scaling.beta_slow);
    scaling.attention_factor = keys.PositiveDouble(prefix + "scaling.yarn_attn_factor", kMaxFactor);
    if (const std::optional<double> multiplier = keys.Double(prefix + "scaling.yarn_log_multiplier", 0.0, kMaxFactor)) {
      scaling.mscale = 1.0;
      scaling.mscale_all_dim = *multiplier;
      if (config.kv_lora_rank > 0) {
        // llama.cpp's converter multiplies the value by 0.1 for this architecture, and leaves out mscale, which is
        // equal in all published models.
        scaling.mscale_all_dim = *multiplier / 0.1;
        scaling.mscale = scaling.mscale_all_dim;
      }
    }
    // GGUF files do not contain this setting. gpt-oss was trained without rounding of the range.
    scaling.truncate = config.model_type != "gpt_oss";
  } else if (type != "none" && type != "longrope") {
    keys.Fail(type_key, "unknown scaling type (" + Escape(type, 40) + "; known: none, linear, yarn, longrope)");
  }
}

}  // namespace

void ReadGgufRope(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  const std::string prefix = std::string(*keys.String("general.architecture")) + ".rope.";
  config.rope_theta = keys.PositiveDouble(prefix + "freq_base", kMaxTheta).value_or(10000.0);
  const std::string dimension_key = prefix + "dimension_count";
  const int64_t rotary_dim = keys.Int(dimension_key, 2, config.head_dim).value_or(config.head_dim);
  if (rotary_dim % 2 != 0) keys.Fail(dimension_key, "not even (" + std::to_string(rotary_dim) + ")");
  if (rotary_dim != config.head_dim) config.rotary_dim = rotary_dim;
  ReadScaling(keys, prefix, config);

  RopeScaling& scaling = config.rope_scaling;
  const int64_t half = rotary_dim / 2;
  if (std::vector<double> factors = Factors(file, "rope_freqs.weight", half); !factors.empty()) {
    if (scaling.kind != RopeScaling::Kind::kNone)
      keys.Fail("tensor rope_freqs.weight", "conflicts with another rope scaling");
    scaling.kind = RopeScaling::Kind::kFactors;
    scaling.short_factor = std::move(factors);
  }
  std::vector<double> long_factor = Factors(file, "rope_factors_long.weight", half);
  std::vector<double> short_factor = Factors(file, "rope_factors_short.weight", half);
  if (long_factor.empty() != short_factor.empty())
    keys.Fail("tensor rope_factors_long.weight", "rope_factors_long and rope_factors_short must occur together");
  if (!long_factor.empty()) {
    if (scaling.kind != RopeScaling::Kind::kNone)
      keys.Fail("tensor rope_factors_long.weight", "conflicts with another rope scaling");
    scaling.kind = RopeScaling::Kind::kLongRope;
    scaling.long_factor = std::move(long_factor);
    scaling.short_factor = std::move(short_factor);
    scaling.original_max_position_embeddings =
        keys.Int(prefix + "scaling.original_context_length", 1, kMaxPositions).value_or(config.max_position_embeddings);
    scaling.factor = static_cast<double>(config.max_position_embeddings) /
                     static_cast<double>(scaling.original_max_position_embeddings);
    scaling.attention_factor = keys.PositiveDouble(prefix + "scaling.attn_factor", kMaxFactor);
  }
  if (config.kv_lora_rank > 0 && scaling.kind != RopeScaling::Kind::kNone && scaling.kind != RopeScaling::Kind::kYarn) {
    keys.Fail(prefix + "scaling.type", "only none and yarn are supported for this architecture");
  }
  if (config.model_type == "ministral3") {
    const std::string temperature_key =
        std::string(*keys.String("general.architecture")) + ".attention.temperature_scale";
    const double temperature = keys.Double(temperature_key, 0.0, kMaxFactor).value_or(0.0);
    if (temperature > 0.0) {
      if (scaling.original_max_position_embeddings == 0) keys.Fail(temperature_key, "needs YaRN scaling");
      config.llama_4_scaling_beta = temperature;
    }
  }
  if (config.model_type == "modernbert") {
    config.rope_local_theta = keys.PositiveDouble(prefix + "freq_base_swa", kMaxTheta).value_or(config.rope_theta);
  }
  if (config.model_type != "gemma3_text" && config.model_type != "gemma3n_text" && config.model_type != "olmo3") return;
  // Gemma 3's sliding-window layers have their own rotary base. Older files do not contain it. Those of OLMo 3 use the
  // base of the other layers without scaling.
  config.rope_local_theta = keys.PositiveDouble(prefix + "freq_base_swa", kMaxTheta)
                                .value_or(config.model_type == "olmo3" ? config.rope_theta : 10000.0);
  for (LayerConfig& layer : config.layers) layer.use_local_rope = layer.sliding_window > 0;
}

}  // namespace vllm
