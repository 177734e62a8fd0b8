#include "engine/model_loader/hf/rope_config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

RopeScaling::Kind KindByName(const ConfigFields& fields, const char* key, const std::string& name, bool is_phi3) {
  if (name == "default") return RopeScaling::Kind::kNone;
  // Early Phi-3 files say "su" or "yarn" for what became longrope.
  if (name == "longrope" || (is_phi3 && (name == "su" || name == "yarn"))) return RopeScaling::Kind::kLongRope;
  if (name == "linear") return RopeScaling::Kind::kLinear;
  if (name == "dynamic") return RopeScaling::Kind::kDynamic;
  if (name == "llama3") return RopeScaling::Kind::kLlama3;
  if (name == "yarn") return RopeScaling::Kind::kYarn;
  fields.Refuse(key, "unknown kind, known are default, linear, dynamic, llama3, yarn and longrope");
}

// `whole` is where some files keep original_max_position_embeddings.
void ReadLongRope(const ConfigFields& fields, const ConfigFields& whole, const ModelConfig& config,
                  RopeScaling& scaling) {
  const char* original = "original_max_position_embeddings";
  scaling.original_max_position_embeddings =
      whole.Has(original) ? whole.RequiredInt(original, 1, kMaxPositions)
                          : fields.Int(original, 1, kMaxPositions).value_or(config.max_position_embeddings);
  scaling.factor = fields.PositiveDouble("factor", kMaxFactor)
                       .value_or(static_cast<double>(config.max_position_embeddings) /
                                 static_cast<double>(scaling.original_max_position_embeddings));
  scaling.attention_factor = fields.PositiveDouble("attention_factor", kMaxFactor);
  if (scaling.factor > 1.0 && !scaling.attention_factor && scaling.original_max_position_embeddings < 2) {
    fields.Fail(original, "not above 1 (1)");
  }
  for (const char* name : {"short_factor", "long_factor"}) {
    if (!fields.Has(name)) fields.Fail(name, "missing");
    std::vector<double> factors = fields.PositiveDoubles(name, kMaxFactor);
    if (static_cast<int64_t>(factors.size()) != config.rotary_dim / 2) {
      fields.Refuse(name, "not one for each of " + std::to_string(config.rotary_dim / 2) + " pairs");
    }
    (name[0] == 's' ? scaling.short_factor : scaling.long_factor) = std::move(factors);
  }
}

// REQUIRES: config.rotary_dim is set.
void ReadScaling(const ConfigFields& fields, const ConfigFields& whole, const ModelConfig& config,
                 RopeScaling& scaling) {
  const int64_t max_position_embeddings = config.max_position_embeddings;
  // "type" is the older spelling; files that were converted have both.
  const char* key = fields.Has("rope_type") ? "rope_type" : "type";
  if (!fields.Has(key)) fields.Fail("rope_type", "missing");
  scaling.kind = KindByName(fields, key, *fields.String(key), config.model_type == "phi3");
  if (scaling.kind == RopeScaling::Kind::kNone) return;
  if (scaling.kind == RopeScaling::Kind::kLongRope) return ReadLongRope(fields, whole, config, scaling);
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
        fields.Refuse("high_freq_factor", "not above low_freq_factor");
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

bool HasPartialRotation(const std::string& family) { return family == "phi3" || family == "stablelm"; }

void SetRotaryDim(const ConfigFields& fields, ModelConfig& config) {
  config.rotary_dim = config.head_dim;
  const char* name = "partial_rotary_factor";
  const double partial = fields.PositiveDouble(name, 1.0).value_or(1.0);
  if (partial == 1.0) return;
  if (!HasPartialRotation(config.model_type)) fields.Refuse(name, "rotating a part of each head is not supported");
  config.rotary_dim = static_cast<int64_t>(static_cast<double>(config.head_dim) * partial);
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0) {
    fields.Refuse(name, "not an even part of head_dim " + std::to_string(config.head_dim));
  }
}

// One set of rotary parameters: rope_scaling of older files, rope_parameters of newer ones, or the part of that for
// layers that see everything.
void ReadParameters(const ConfigFields& part, const ConfigFields& whole, bool type_needed, ModelConfig& config) {
  config.rope_theta = part.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
  if (part.Has("partial_rotary_factor")) SetRotaryDim(part, config);
  // rope_parameters is always written, with rope_theta alone when nothing is scaled.
  if (type_needed || part.Has("rope_type") || part.Has("type")) ReadScaling(part, whole, config, config.rope_scaling);
}

void ReadLocalParameters(const ConfigFields& part, ModelConfig& config) {
  config.rope_local_theta = part.PositiveDouble("rope_theta", kMaxTheta).value_or(*config.rope_local_theta);
  const std::string kind = part.String(part.Has("rope_type") ? "rope_type" : "type").value_or("default");
  if (kind != "default") part.Refuse("rope_type", "sliding layers cannot be scaled");
}

}  // namespace

void ReadRopeConfig(const ConfigFields& fields, ModelConfig& config) {
  config.rope_theta = fields.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
  if (config.model_type == "gemma3_text") {
    config.rope_local_theta = fields.PositiveDouble("rope_local_base_freq", kMaxTheta).value_or(1e4);
  }
  const bool is_new = fields.Has("rope_parameters");
  const char* key = is_new ? "rope_parameters" : "rope_scaling";
  if (!fields.Has(key)) return SetRotaryDim(fields, config);
  const ConfigFields part = fields.Child(key);
  // A default of the family's must not be judged where the file has the value further in.
  if (!part.Has("partial_rotary_factor")) SetRotaryDim(fields, config);
  const char* global = "full_attention";
  const char* local = "sliding_attention";
  if (config.rope_local_theta && (part.Has(global) || part.Has(local))) {
    if (part.Has(global)) ReadParameters(part.Child(global), fields, false, config);
    if (part.Has(local)) ReadLocalParameters(part.Child(local), config);
    return;
  }
  for (const auto& [name, value] : fields.At(key).items()) {
    if (value.is_object()) {
      part.Fail(Escape(name, 60).c_str(), "rotary parameters by layer type are not supported");
    }
  }
  ReadParameters(part, fields, !is_new, config);
}

}  // namespace vllm
