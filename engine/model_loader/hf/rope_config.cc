#include "engine/model_loader/hf/rope_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/config/escape.h"
#include "engine/model_loader/hf/gemma4_config.h"
#include "engine/model_loader/hf/model_types.h"

namespace vllm {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

RopeScaling::Kind KindByName(const ConfigFields& fields, const char* key, const std::string& name, bool is_phi3) {
  if (name == "default") return RopeScaling::Kind::kNone;
  // Early Phi-3 files call longrope "su" or "yarn".
  if (name == "longrope" || (is_phi3 && (name == "su" || name == "yarn"))) return RopeScaling::Kind::kLongRope;
  if (name == "linear") return RopeScaling::Kind::kLinear;
  if (name == "dynamic") return RopeScaling::Kind::kDynamic;
  if (name == "llama3") return RopeScaling::Kind::kLlama3;
  if (name == "yarn") return RopeScaling::Kind::kYarn;
  fields.Fail(
      key, "unknown scaling type (" + Escape(name, 40) + "; known: default, linear, dynamic, llama3, yarn, longrope)");
}

// Some files have original_max_position_embeddings in the outer config, not in rope_scaling.
void ReadLongRope(const ConfigFields& fields, const ConfigFields& outer, const ModelConfig& config,
                  RopeScaling& scaling) {
  const char* original = "original_max_position_embeddings";
  scaling.original_max_position_embeddings =
      outer.Has(original) ? outer.RequiredInt(original, 1, kMaxPositions)
                          : fields.Int(original, 1, kMaxPositions).value_or(config.max_position_embeddings);
  scaling.factor = fields.PositiveDouble("factor", kMaxFactor)
                       .value_or(static_cast<double>(config.max_position_embeddings) /
                                 static_cast<double>(scaling.original_max_position_embeddings));
  scaling.attention_factor = fields.PositiveDouble("attention_factor", kMaxFactor);
  if (config.model_type == "phimoe") {
    scaling.short_mscale = fields.RequiredPositiveDouble("short_mscale", kMaxFactor);
    scaling.long_mscale = fields.RequiredPositiveDouble("long_mscale", kMaxFactor);
  }
  if (scaling.factor > 1.0 && !scaling.attention_factor && scaling.original_max_position_embeddings < 2) {
    fields.Fail(original, "not above 1 (1)");
  }
  for (const char* name : {"short_factor", "long_factor"}) {
    if (!fields.Has(name)) fields.Fail(name, "missing");
    std::vector<double> factors = fields.PositiveDoubles(name, kMaxFactor);
    if (static_cast<int64_t>(factors.size()) != config.rotary_dim / 2) {
      fields.Reject(name, "must have " + std::to_string(config.rotary_dim / 2) + " values, one per rotary pair");
    }
    (name[0] == 's' ? scaling.short_factor : scaling.long_factor) = std::move(factors);
  }
}

// REQUIRES: config.rotary_dim is set.
void ReadScaling(const ConfigFields& fields, const ConfigFields& outer, ModelConfig& config, RopeScaling& scaling) {
  const int64_t max_position_embeddings = config.max_position_embeddings;
  // "type" is the older spelling. Converted files have both.
  const char* key = fields.Has("rope_type") ? "rope_type" : "type";
  if (!fields.Has(key)) fields.Fail("rope_type", "missing");
  // The three positions of a text token are equal, so that their sections are rotated as without sections.
  if (*fields.String(key) == "mrope" && IsQwen2VL(config.model_type)) return;
  scaling.kind = KindByName(fields, key, *fields.String(key), config.model_type == "phi3");
  if (scaling.kind == RopeScaling::Kind::kNone) return;
  if (config.kv_lora_rank > 0 && scaling.kind != RopeScaling::Kind::kYarn) {
    fields.Reject(key, "only default and yarn are supported for this model_type");
  }
  // Hunyuan's "dynamic" scaling with alpha only raises the base.
  if (scaling.kind == RopeScaling::Kind::kDynamic && config.model_type == "hunyuan_v1_dense" && fields.Has("alpha")) {
    const double alpha = fields.RequiredPositiveDouble("alpha", kMaxFactor);
    const auto dim = static_cast<double>(config.head_dim);
    if (config.head_dim <= 2) fields.Fail("alpha", "needs a head_dim above 2");
    config.rope_theta *= std::pow(alpha, dim / (dim - 2.0));
    scaling.kind = RopeScaling::Kind::kNone;
    return;
  }
  if (scaling.kind == RopeScaling::Kind::kLongRope) return ReadLongRope(fields, outer, config, scaling);
  scaling.factor = fields.RequiredPositiveDouble("factor", kMaxFactor);
  const char* original = "original_max_position_embeddings";
  switch (scaling.kind) {
    case RopeScaling::Kind::kDynamic:
      scaling.original_max_position_embeddings =
          fields.Int(original, 1, kMaxPositions).value_or(max_position_embeddings);
      break;
    case RopeScaling::Kind::kLlama3:
      scaling.original_max_position_embeddings = fields.RequiredInt(original, 1, kMaxPositions);
      scaling.low_freq_factor = fields.RequiredPositiveDouble("low_freq_factor", kMaxFactor);
      scaling.high_freq_factor = fields.RequiredPositiveDouble("high_freq_factor", kMaxFactor);
      if (!(scaling.high_freq_factor > scaling.low_freq_factor)) {
        fields.Reject("high_freq_factor", "not above low_freq_factor");
      }
      break;
    case RopeScaling::Kind::kYarn:
      scaling.original_max_position_embeddings =
          fields.Int(original, 1, kMaxPositions).value_or(max_position_embeddings);
      scaling.beta_fast = fields.PositiveDouble("beta_fast", kMaxFactor).value_or(scaling.beta_fast);
      scaling.beta_slow = fields.PositiveDouble("beta_slow", kMaxFactor).value_or(scaling.beta_slow);
      scaling.attention_factor = fields.PositiveDouble("attention_factor", kMaxFactor);
      scaling.mscale = fields.PositiveDouble("mscale", kMaxFactor);
      scaling.mscale_all_dim = fields.PositiveDouble("mscale_all_dim", kMaxFactor);
      scaling.truncate = fields.Bool("truncate").value_or(true);
      break;
    default:
      break;
  }
}

bool SupportsPartialRotation(const std::string& model_type) {
  for (const char* name : {"phi3", "stablelm", "glm", "glm4", "glm4_moe", "nemotron", "gpt_neox", "qwen3_next",
                           "qwen3_5_text", "qwen3_5_moe_text", "bailing_moe_v2"}) {
    if (model_type == name) return true;
  }
  return false;
}

void SetRotaryDim(const ConfigFields& fields, ModelConfig& config) {
  config.rotary_dim = config.qk_rope_head_dim > 0 ? config.qk_rope_head_dim : config.head_dim;
  const char* name = "partial_rotary_factor";
  const double partial = fields.PositiveDouble(name, 1.0).value_or(1.0);
  if (partial == 1.0) return;
  if (!SupportsPartialRotation(config.model_type))
    fields.Reject(name, "partial rotation is not supported for this model_type");
  config.rotary_dim = static_cast<int64_t>(static_cast<double>(config.head_dim) * partial);
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0) {
    fields.Reject(
        name, "must select an even number of dimensions, at least 2, of head_dim " + std::to_string(config.head_dim));
  }
}

// Reads one set of rotary parameters: rope_scaling (older files), rope_parameters (newer files), or the part of
// rope_parameters for full-attention layers.
void ReadParameters(const ConfigFields& part, const ConfigFields& outer, bool is_type_required, ModelConfig& config) {
  config.rope_theta = part.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
  if (part.Has("partial_rotary_factor")) SetRotaryDim(part, config);
  if (config.model_type == "ministral3") {
    const char* beta = "llama_4_scaling_beta";
    if (!part.Has(beta)) part.Fail(beta, "missing");
    config.llama_4_scaling_beta = part.Double(beta, 0.0, kMaxFactor);
    const char* original = "original_max_position_embeddings";
    config.rope_scaling.original_max_position_embeddings = part.RequiredInt(original, 1, kMaxPositions);
  }
  // transformers 5 always writes rope_parameters. Without scaling, the object may contain only rope_theta.
  if (is_type_required || part.Has("rope_type") || part.Has("type"))
    ReadScaling(part, outer, config, config.rope_scaling);
}

void ReadLocalParameters(const ConfigFields& part, ModelConfig& config) {
  config.rope_local_theta = part.PositiveDouble("rope_theta", kMaxTheta).value_or(*config.rope_local_theta);
  const char* const name = part.Has("rope_type") ? "rope_type" : "type";
  const std::string kind = part.String(name).value_or("default");
  if (kind != "default") part.Reject(name, "scaling is not supported for sliding_attention layers");
}

}  // namespace

void ReadRopeConfig(const ConfigFields& fields, ModelConfig& config) {
  if (config.model_type == "gemma4_text") return ReadGemma4Rope(fields, config);
  config.rope_theta = fields.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
  if (config.model_type == "gemma3_text" || config.model_type == "gemma3n_text" || config.model_type == "modernbert") {
    config.rope_local_theta = fields.PositiveDouble("rope_local_base_freq", kMaxTheta).value_or(1e4);
  }
  // The sliding layers of OLMo 3 use the base of the full layers, without scaling.
  if (config.model_type == "olmo3") config.rope_local_theta = config.rope_theta;
  const bool is_new = fields.Has("rope_parameters");
  const char* key = is_new ? "rope_parameters" : "rope_scaling";
  if (!fields.Has(key)) return SetRotaryDim(fields, config);
  const ConfigFields part = fields.Child(key);
  // If `part` has partial_rotary_factor, ReadParameters reads it there, and a default in the outer config must not
  // cause an error.
  if (!part.Has("partial_rotary_factor")) SetRotaryDim(fields, config);
  const char* full = "full_attention";
  const char* sliding = "sliding_attention";
  if (config.rope_local_theta && (part.Has(full) || part.Has(sliding))) {
    if (part.Has(full)) ReadParameters(part.Child(full), fields, false, config);
    if (part.Has(sliding)) ReadLocalParameters(part.Child(sliding), config);
    return;
  }
  for (const auto& [name, value] : fields.At(key).items()) {
    if (value.is_object()) {
      part.Fail(Escape(name, 60).c_str(), "must not be an object: rotary parameters per layer type are not supported");
    }
  }
  ReadParameters(part, fields, !is_new, config);
}

}  // namespace vllm
