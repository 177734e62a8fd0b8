#include "engine/lora/peft_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/config_fields.h"
#include "engine/model_loader/json_file.h"

namespace vllm {
namespace {

constexpr int64_t kMaxRank = int64_t{1} << 16;
constexpr double kMaxAlpha = 1e9;
constexpr size_t kMaxPatterns = 4096;

// Fields that ParsePeftConfig reads.
constexpr std::array<std::string_view, 12> kReadFields = {
    "peft_type",      "r",        "lora_alpha",   "use_rslora",    "lora_bias",
    "use_dora",       "bias",     "rank_pattern", "alpha_pattern", "init_lora_weights",
    "fan_in_fan_out", "task_type"};
// Fields that do not change results once the tensors are known. peft's fan_in_fan_out only says that the base weight is
// stored transposed, which the engine knows from the base model.
constexpr std::array<std::string_view, 17> kIgnoredFields = {"auto_mapping",    "base_model_name_or_path",
                                                             "revision",        "inference_mode",
                                                             "lora_dropout",    "target_modules",
                                                             "exclude_modules", "layers_to_transform",
                                                             "layers_pattern",  "peft_version",
                                                             "megatron_core",   "qalora_group_size",
                                                             "loftq_config",    "eva_config",
                                                             "corda_config",    "lora_ga_config",
                                                             "runtime_config"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Value>
const Value* FirstMatch(const std::vector<PeftConfig::Pattern<Value>>& patterns, std::string_view module) {
  for (const PeftConfig::Pattern<Value>& pattern : patterns) {
    std::vector<tokenizer::Match> matches;
    pattern.regex->FindMatches(module, 0, matches);
    if (!matches.empty() && matches[0].is_match && matches[0].begin == 0) return &pattern.value;
  }
  return nullptr;
}

// Returns the keys of an object in the order of the text. REQUIRES: ParseJson has accepted the text.
std::vector<std::string> KeysInOrder(std::string_view text, const char* name) {
  // ParseJson sorts keys. It also accepts NaN, which this parser does not.
  const auto object = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> keys;
  if (!object.is_object() || !object.contains(name)) return keys;
  for (const auto& [key, value] : object.at(name).items()) keys.push_back(key);
  return keys;
}

template <typename Value, typename Read>
std::vector<PeftConfig::Pattern<Value>> ReadPatterns(std::string_view text, const ConfigFields& fields,
                                                     const char* name, Read read) {
  std::vector<PeftConfig::Pattern<Value>> patterns;
  if (!fields.Has(name)) return patterns;
  const ConfigFields values = fields.Child(name);
  const std::vector<std::string> keys = KeysInOrder(text, name);
  if (keys.size() != fields.At(name).size()) fields.Fail(name, "must not contain NaN or infinity");
  if (keys.size() > kMaxPatterns) {
    fields.Fail(name, "too many patterns (at most " + std::to_string(kMaxPatterns) + ")");
  }
  for (const std::string& key : keys) {
    try {
      // PEFT calls re.match(rf"(.*\.)?({key})$", module).
      auto regex = std::make_shared<const tokenizer::OnigPattern>("\\A(.*\\.)?(" + key + ")\\z");
      patterns.push_back({std::move(regex), read(values, key.c_str())});
    } catch (const ModelError&) {
      throw;
    } catch (const std::runtime_error& e) {
      fields.Fail(name, "invalid regular expression " + Escape(key) + ": " + e.what());
    }
  }
  return patterns;
}

// Returns true for values by which peft says that a feature is not used.
bool IsUnset(const nlohmann::json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         ((value.is_string() || value.is_array() || value.is_object()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

void CheckOtherFields(const nlohmann::json& object, const ConfigFields& fields) {
  for (const auto& [key, value] : object.items()) {
    if (Contains(kReadFields, key) || Contains(kIgnoredFields, key) || IsUnset(value)) continue;
    fields.Reject(key.c_str(), "this option of PEFT is not supported");
  }
}

void CheckInitialization(const nlohmann::json& object, const ConfigFields& fields) {
  const auto it = object.find("init_lora_weights");
  if (it == object.end() || !it->is_string()) return;
  for (const char* plain : {"gaussian", "eva", "orthogonal"}) {
    if (*it == plain) return;
  }
  fields.Reject("init_lora_weights",
                "this initialization changes the weights of the base model, so the adapter does not fit the published "
                "ones; save it with path_initial_model_for_weight_conversion");
}

}  // namespace

int64_t PeftConfig::RankOf(std::string_view module) const {
  const int64_t* rank = FirstMatch(rank_pattern, module);
  return rank == nullptr ? r : *rank;
}

double PeftConfig::ScaleOf(std::string_view module) const {
  const double* matched = FirstMatch(alpha_pattern, module);
  const double alpha = matched == nullptr ? lora_alpha : *matched;
  const auto rank = static_cast<double>(RankOf(module));
  return alpha / (use_rslora ? std::sqrt(rank) : rank);
}

PeftConfig ParsePeftConfig(std::string_view text, const std::string& what) {
  const nlohmann::json object = ParseJson(text, what);
  const ConfigFields fields(object, what);
  PeftConfig config;
  const std::string type = fields.String("peft_type").value_or("");
  if (type != "LORA") fields.Reject("peft_type", "only LORA adapters are supported");
  config.r = fields.Int("r", 1, kMaxRank).value_or(config.r);
  config.lora_alpha = fields.Double("lora_alpha", -kMaxAlpha, kMaxAlpha).value_or(config.lora_alpha);
  config.use_rslora = fields.Bool("use_rslora").value_or(false);
  config.lora_bias = fields.Bool("lora_bias").value_or(false);
  config.use_dora = fields.Bool("use_dora").value_or(false);
  fields.Bool("fan_in_fan_out");
  const std::string bias = fields.String("bias").value_or("none");
  if (bias == "all") {
    config.bias = PeftConfig::Bias::kAll;
  } else if (bias == "lora_only") {
    config.bias = PeftConfig::Bias::kLoRAOnly;
  } else if (bias != "none") {
    fields.Reject("bias", "must be none, all or lora_only");
  }
  config.rank_pattern = ReadPatterns<int64_t>(
      text, fields, "rank_pattern",
      [](const ConfigFields& values, const char* key) { return values.RequiredInt(key, 1, kMaxRank); });
  config.alpha_pattern =
      ReadPatterns<double>(text, fields, "alpha_pattern", [](const ConfigFields& values, const char* key) {
        const std::optional<double> alpha = values.Double(key, -kMaxAlpha, kMaxAlpha);
        if (!alpha) values.Reject(key, "must be a number");
        return *alpha;
      });
  CheckInitialization(object, fields);
  CheckOtherFields(object, fields);
  return config;
}

}  // namespace vllm
