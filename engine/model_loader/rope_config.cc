#include "engine/model_loader/rope_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "engine/model_loader/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

RopeScaling::Kind KindByName(const ConfigFields& fields, const char* key, const std::string& name) {
  if (name == "default") return RopeScaling::Kind::kNone;
  if (name == "linear") return RopeScaling::Kind::kLinear;
  if (name == "dynamic") return RopeScaling::Kind::kDynamic;
  if (name == "llama3") return RopeScaling::Kind::kLlama3;
  if (name == "yarn") return RopeScaling::Kind::kYarn;
  fields.Refuse(key, "unknown kind, known are default, linear, dynamic, llama3 and yarn");
}

void ReadScaling(const ConfigFields& fields, int64_t max_position_embeddings, RopeScaling& scaling) {
  // "type" is the older spelling; files that were converted have both.
  const char* key = fields.Has("rope_type") ? "rope_type" : "type";
  if (!fields.Has(key)) fields.Fail("rope_type", "missing");
  scaling.kind = KindByName(fields, key, *fields.String(key));
  if (scaling.kind == RopeScaling::Kind::kNone) return;
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

}  // namespace

void ReadRopeConfig(const ConfigFields& fields, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  config.rope_theta = fields.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
  const char* key = fields.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (fields.Has(key)) {
    ConfigFields part = fields.Child(key);
    for (const auto& [name, value] : fields.At(key).items()) {
      if (value.is_object()) {
        part.Fail(Escape(name, 60).c_str(), "rotary parameters by layer type are not supported");
      }
    }
    config.rope_theta = part.PositiveDouble("rope_theta", kMaxTheta).value_or(config.rope_theta);
    double partial = part.PositiveDouble("partial_rotary_factor", 1.0).value_or(1.0);
    if (partial != 1.0) part.Refuse("partial_rotary_factor", "rotating a part of each head is not supported");
    // rope_parameters is always written, with rope_theta alone when nothing is scaled.
    bool plain = std::string(key) == "rope_parameters" && !part.Has("rope_type") && !part.Has("type");
    if (!plain) ReadScaling(part, config.max_position_embeddings, scaling);
  }
  double partial = fields.PositiveDouble("partial_rotary_factor", 1.0).value_or(1.0);
  if (partial != 1.0) fields.Refuse("partial_rotary_factor", "rotating a part of each head is not supported");
}

}  // namespace vllm
