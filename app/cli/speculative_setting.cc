#include "app/cli/speculative_setting.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAuto = "auto";
constexpr const char* kMethods = "off, auto, ngram, suffix, grammar or draft_model";
constexpr const char* kNeedsTrainedHead =
    "not supported, because it needs weights trained for it; must be off, auto, ngram, suffix, grammar or draft_model";
constexpr size_t kMaxValueBytes = 80;  // of a value in an error

// vLLM's methods that need trained weights.
constexpr auto kTrainedMethods =
    std::to_array<std::string_view>({"eagle", "eagle3", "medusa", "mlp_speculator", "mtp", "dflash"});

struct KeyInfo {
  std::string_view name;
  SpeculativeMethod method;  // that the key belongs to; kOff: every method
  std::variant<int64_t SpeculativeConfig::*, double SpeculativeConfig::*, bool SpeculativeConfig::*,
               std::string SpeculativeConfig::*>
      member;
};

constexpr KeyInfo kKeys[] = {
    {"num_speculative_tokens", SpeculativeMethod::kOff, &SpeculativeConfig::num_speculative_tokens},
    {"adaptive", SpeculativeMethod::kOff, &SpeculativeConfig::adaptive},
    {"prompt_lookup_min", SpeculativeMethod::kNgram, &SpeculativeConfig::prompt_lookup_min},
    {"prompt_lookup_max", SpeculativeMethod::kNgram, &SpeculativeConfig::prompt_lookup_max},
    {"suffix_decoding_max_tree_depth", SpeculativeMethod::kSuffix, &SpeculativeConfig::suffix_decoding_max_tree_depth},
    {"suffix_decoding_max_cached_requests", SpeculativeMethod::kSuffix,
     &SpeculativeConfig::suffix_decoding_max_cached_requests},
    {"suffix_decoding_max_spec_factor", SpeculativeMethod::kSuffix,
     &SpeculativeConfig::suffix_decoding_max_spec_factor},
    {"suffix_decoding_min_token_prob", SpeculativeMethod::kSuffix, &SpeculativeConfig::suffix_decoding_min_token_prob},
    {"model", SpeculativeMethod::kDraftModel, &SpeculativeConfig::model},
    {"draft_tensor_parallel_size", SpeculativeMethod::kDraftModel, &SpeculativeConfig::draft_tensor_parallel_size},
};

[[noreturn]] void Fail(const std::string& why) { throw ConfigError("--speculative-config: " + why); }

// Describes a value for an error.
std::string ValueText(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return Escape(value.is_string() ? value.get_ref<const std::string&>() : value.dump(), kMaxValueBytes);
}

[[noreturn]] void FailKey(std::string_view key, const std::string& why, const Json& value) {
  Fail(Escape(key) + ": " + why + " (" + ValueText(value) + ")");
}

bool NeedsTrainedHead(std::string_view method) {
  return std::ranges::find(kTrainedMethods, method) != kTrainedMethods.end() || method.ends_with("_mtp");
}

std::optional<SpeculativeMethod> MethodOf(std::string_view name) {
  if (name == kAuto) return SpeculativeMethod::kSuffix;
  for (int i = 0; i < kNumSpeculativeMethods; ++i) {
    const auto method = static_cast<SpeculativeMethod>(i);
    if (name == ToString(method)) return method;
  }
  return std::nullopt;
}

// Returns the keys of a method, for an error.
std::string KeysOf(SpeculativeMethod method, bool is_auto) {
  std::string text = "method";
  for (const KeyInfo& key : kKeys) {
    if (key.method == SpeculativeMethod::kOff || (key.method == method && !is_auto)) {
      text += ", " + std::string(key.name);
    }
  }
  return text;
}

void SetMember(const KeyInfo& key, const Json& value, SpeculativeConfig& config) {
  if (const auto* integer = std::get_if<int64_t SpeculativeConfig::*>(&key.member)) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
    if (!fits) FailKey(key.name, "must be an integer", value);
    config.*(*integer) = value.get<int64_t>();
  } else if (const auto* number = std::get_if<double SpeculativeConfig::*>(&key.member)) {
    if (!value.is_number()) FailKey(key.name, "must be a number", value);
    config.*(*number) = value.get<double>();
  } else if (const auto* text = std::get_if<std::string SpeculativeConfig::*>(&key.member)) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      FailKey(key.name, "must be the name of a model", value);
    }
    config.*(*text) = value.get<std::string>();
  } else {
    if (!value.is_boolean()) FailKey(key.name, "must be true or false", value);
    config.*std::get<bool SpeculativeConfig::*>(key.member) = value.get<bool>();
  }
}

const KeyInfo& FindKey(const std::string& name, const Json& value, SpeculativeMethod method, bool is_auto) {
  std::vector<std::string> names = {"method"};
  for (const KeyInfo& key : kKeys) {
    names.emplace_back(key.name);
    if (key.name != name) continue;
    if (key.method == SpeculativeMethod::kOff || (key.method == method && !is_auto)) return key;
    FailKey(name,
            "belongs to the method " + std::string(ToString(key.method)) + ", not to " +
                std::string(is_auto ? kAuto : ToString(method)),
            value);
  }
  const std::string near = NearestName(name, names);
  Fail("unknown key " + Escape(name) + " (" + ValueText(value) + "); " +
       (near.empty() ? "the keys are " + KeysOf(method, is_auto) : "did you mean " + near + "?"));
}

SpeculativeConfig ConfigOfObject(const Json& object) {
  const auto method_value = object.find("method");
  if (method_value == object.end()) Fail(std::string("method: missing; must be ") + kMethods);
  if (!method_value->is_string()) FailKey("method", std::string("must be ") + kMethods, *method_value);
  const std::string name = method_value->get<std::string>();
  if (NeedsTrainedHead(name)) FailKey("method", kNeedsTrainedHead, *method_value);
  const std::optional<SpeculativeMethod> method = MethodOf(name);
  if (!method) FailKey("method", std::string("must be ") + kMethods, *method_value);
  const bool is_auto = name == kAuto;

  SpeculativeConfig config;
  config.method = *method;
  bool has_min = false, has_max = false;
  for (const auto& [key, value] : object.items()) {
    if (key == "method") continue;
    const bool is_known = std::ranges::any_of(kKeys, [&key](const KeyInfo& known) { return known.name == key; });
    if (value.is_null() && is_known) continue;
    const KeyInfo& info = FindKey(key, value, *method, is_auto);
    SetMember(info, value, config);
    has_min = has_min || key == "prompt_lookup_min";
    has_max = has_max || key == "prompt_lookup_max";
    // In the configuration, 0 stands for the default, so Finalize accepts it.
    const int64_t num_tokens = config.num_speculative_tokens;
    if (key == "num_speculative_tokens" && (num_tokens < 1 || num_tokens > kMaxSpeculativeTokens)) {
      FailKey(key, "outside 1 to " + std::to_string(kMaxSpeculativeTokens), value);
    }
    if (key == "adaptive" && is_auto && !config.adaptive) {
      FailKey(key, "must be true with the method auto; suffix also accepts false", value);
    }
  }
  if (config.method == SpeculativeMethod::kDraftModel && config.model.empty()) {
    Fail("model: missing; the method draft_model needs the name of a small model with the same vocabulary");
  }
  if (has_min && !has_max) config.prompt_lookup_max = config.prompt_lookup_min;
  if (has_max && !has_min) config.prompt_lookup_min = config.prompt_lookup_max;
  return config;
}

SpeculativeConfig ConfigOfName(std::string_view name) {
  if (NeedsTrainedHead(name)) FailKey("method", kNeedsTrainedHead, name);
  const std::optional<SpeculativeMethod> method = MethodOf(name);
  if (!method)
    Fail("must be off, auto, ngram, suffix, grammar or a JSON object (" + Escape(name, kMaxValueBytes) + ")");
  if (*method == SpeculativeMethod::kDraftModel) {
    throw ConfigError("--speculative-config: draft_model needs the name of the model",
                      R"(--speculative-config '{"method": "draft_model", "model": "OWNER/NAME"}')");
  }
  SpeculativeConfig config;
  config.method = *method;
  return config;
}

}  // namespace

SpeculativeConfig ParseSpeculativeConfig(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '{') return ConfigOfName(text);
  Json object;
  try {
    object = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    throw ConfigError("--speculative-config: invalid JSON at character " + std::to_string(error.byte) + " (" +
                          Escape(text, kMaxValueBytes) + ")",
                      R"(--speculative-config '{"method": "ngram", "num_speculative_tokens": 4}')");
  } catch (const Json::out_of_range&) {
    Fail("a number is too large (" + Escape(text, kMaxValueBytes) + ")");
  }
  return ConfigOfObject(object);
}

}  // namespace vllm::app
