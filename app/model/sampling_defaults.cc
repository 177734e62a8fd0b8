#include "app/model/sampling_defaults.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/model/structured_outputs_setting.h"
#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDefaultSource = "default";
constexpr std::string_view kNeutralSource = "neutral";

// The numeric parameters that shape the distribution. SamplingText reports only these, SamplingJson also max-tokens.
constexpr std::array<std::string_view, 7> kShaping = {
    "temperature", "top-k", "top-p", "min-p", "presence-penalty", "frequency-penalty", "repetition-penalty"};

class SamplingResolver {
 public:
  SamplingResolver(const Settings& settings, const GenerationConfig& generation)
      : settings_(settings), ignores_model_(settings.Text("generation-config").value_or("auto") == "vllm") {
    if (ignores_model_) return;
    model_ = generation;
    if (model_.do_sample && !*model_.do_sample) model_.temperature = 0.0;
    names_any_ =
        model_.temperature || model_.top_p || model_.top_k || model_.min_p || model_.repetition_penalty.has_value();
  }

  const GenerationConfig& model() const { return model_; }

  double Number(std::string_view name, std::optional<double> from_model, double neutral, double fallback) {
    if (const auto value = settings_.Number(name)) return Note(name, *value, FlagSource(name));
    if (from_model) return Note(name, *from_model, model_.origin);
    return Note(name, UsesFallback() ? fallback : neutral, FallbackSource());
  }

  int64_t Integer(std::string_view name, std::optional<int64_t> from_model, int64_t neutral, int64_t fallback) {
    if (const auto value = settings_.Integer(name)) return Note(name, *value, FlagSource(name));
    if (from_model) return Note(name, *from_model, model_.origin);
    return Note(name, UsesFallback() ? fallback : neutral, FallbackSource());
  }

  std::optional<int64_t> OptionalInteger(std::string_view name, std::optional<int64_t> from_model = std::nullopt) {
    if (const auto value = settings_.Integer(name)) return Note(name, *value, FlagSource(name));
    if (from_model) return Note(name, *from_model, model_.origin);
    Note(name, Json(), kDefaultSource);
    return std::nullopt;
  }

  // Records and returns the value of a parameter that the model's files cannot set.
  template <typename T>
  T FromFlag(std::string_view name, T value) {
    Note(name, value, settings_.Has(name) ? FlagSource(name) : kDefaultSource);
    return value;
  }

  // Returns the values in the order of the flag table, without those of other commands.
  std::vector<SamplingValue> TakeValues(bool greedy) {
    if (greedy) {
      for (SamplingValue& value : values_) {
        const bool is_top_p = value.name == "top-p";
        if (!is_top_p && value.name != "top-k" && value.name != "min-p") continue;
        value.value = DumpJson(is_top_p ? Json(1.0) : Json(0));
        value.source = "temperature 0";
      }
    }
    std::vector<SamplingValue> ordered;
    for (const Flag& flag : FlagTable()) {
      if (flag.group != FlagGroup::kSampling) continue;
      // `show` has few sampling flags itself. It reports the values that run, complete, chat and batch use.
      if (!flag.belongs_to(settings_.command) && settings_.command != Command::kShow) continue;
      const auto it = std::find_if(values_.begin(), values_.end(), [&](const auto& v) { return v.name == flag.name; });
      if (it != values_.end()) ordered.push_back(*it);
    }
    return ordered;
  }

 private:
  template <typename T>
  T Note(std::string_view name, T value, std::string_view source) {
    values_.push_back({std::string(name), DumpJson(Json(value)), std::string(source)});
    return value;
  }
  std::string_view FlagSource(std::string_view name) const { return SettingSourceName(settings_.SourceOf(name)); }
  bool UsesFallback() const { return !ignores_model_ && !names_any_; }
  std::string_view FallbackSource() const {
    if (ignores_model_) return "--generation-config vllm";
    return names_any_ ? kNeutralSource : kDefaultSource;
  }

  const Settings& settings_;
  GenerationConfig model_;
  bool ignores_model_;
  bool names_any_ = false;
  std::vector<SamplingValue> values_;
};

std::string WithUnderscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

SamplingDefaults MakeSamplingDefaults(const Settings& settings, const GenerationConfig& generation) {
  SamplingResolver resolver(settings, generation);
  const GenerationConfig& model = resolver.model();
  SamplingDefaults defaults;
  SamplingParams& params = defaults.params;
  resolver.FromFlag("generation-config", settings.Text("generation-config").value_or("auto"));
  params.temperature = resolver.Number("temperature", model.temperature, 1.0, 0.8);
  params.top_k = resolver.Integer("top-k", model.top_k, 0, 40);
  params.top_p = resolver.Number("top-p", model.top_p, 1.0, 0.95);
  params.min_p = resolver.Number("min-p", model.min_p, 0.0, 0.05);
  params.repetition_penalty = resolver.Number("repetition-penalty", model.repetition_penalty, 1.0, 1.0);
  params.presence_penalty = resolver.FromFlag("presence-penalty", settings.Number("presence-penalty").value_or(0.0));
  params.frequency_penalty = resolver.FromFlag("frequency-penalty", settings.Number("frequency-penalty").value_or(0.0));
  params.max_tokens = resolver.OptionalInteger("max-tokens", model.max_new_tokens);
  params.min_tokens = resolver.FromFlag("min-tokens", settings.Integer("min-tokens").value_or(0));
  params.thinking_token_budget = resolver.OptionalInteger("thinking-budget");
  for (const std::string_view name : {"schema", "json-schema"}) {
    const std::optional<std::string> schema = settings.Text(name);
    resolver.FromFlag(name, schema ? Json(*schema) : Json());
  }
  params.structured_outputs = ReadStructuredOutputs(settings);
  params.n = resolver.FromFlag("n", settings.Integer("n").value_or(1));
  params.best_of = resolver.OptionalInteger("best-of");
  params.use_beam_search = resolver.FromFlag("use-beam-search", settings.Switch("use-beam-search"));
  params.beam_width = resolver.OptionalInteger("beam-width");
  params.length_penalty = settings.Number("length-penalty");
  resolver.FromFlag("length-penalty", params.length_penalty ? Json(*params.length_penalty) : Json());
  params.logprobs = resolver.OptionalInteger("logprobs");
  params.prompt_logprobs = resolver.OptionalInteger("prompt-logprobs");
  params.stop = resolver.FromFlag("stop", settings.Texts("stop"));
  params.stop_token_ids = resolver.FromFlag("stop-token-ids", settings.Ids("stop-token-ids"));
  params.bad_words = resolver.FromFlag("bad-words", settings.Texts("bad-words"));
  params.logit_bias = resolver.FromFlag("logit-bias", settings.Biases("logit-bias"));
  const std::vector<int32_t> allowed = resolver.FromFlag("allowed-token-ids", settings.Ids("allowed-token-ids"));
  if (settings.Has("allowed-token-ids")) params.allowed_token_ids = allowed;
  params.ignore_eos = resolver.FromFlag("ignore-eos", settings.Switch("ignore-eos"));
  params.include_stop_str_in_output =
      resolver.FromFlag("include-stop-str-in-output", settings.Switch("include-stop-str-in-output"));
  params.skip_special_tokens = resolver.FromFlag("skip-special-tokens", settings.Switch("skip-special-tokens"));
  // In a batch, --seed is the engine's seed, from which the engine derives the seed of each row that has none.
  if (settings.command != Command::kBatch) params.seed = settings.Unsigned("seed");
  resolver.FromFlag("seed", params.seed ? Json(*params.seed) : Json());
  defaults.values = resolver.TakeValues(params.greedy());
  return defaults;
}

Json SamplingJson(const std::vector<SamplingValue>& values) {
  Json json = Json::object();
  for (const SamplingValue& value : values) {
    const bool shapes = std::find(kShaping.begin(), kShaping.end(), value.name) != kShaping.end();
    if (!shapes && value.name != "max-tokens") continue;
    Json& entry = json[WithUnderscores(value.name)];
    entry["value"] = Json::parse(value.value);
    entry["source"] = value.source;
  }
  return json;
}

std::string SamplingText(const std::vector<SamplingValue>& values) {
  std::vector<const SamplingValue*> shown;
  for (const std::string_view name : kShaping) {
    const auto it = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.name == name; });
    if (it == values.end()) continue;
    // Leave out penalties that neither the user nor the model has set. --generation-config vllm sets the repetition
    // penalty.
    const bool is_penalty = name.ends_with("-penalty");
    if (is_penalty && (it->source == kDefaultSource || it->source == kNeutralSource)) continue;
    shown.push_back(&*it);
  }
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (i > 0) text += shown[i - 1]->source == shown[i]->source ? ", " : "; ";
    text += shown[i]->name + " " + shown[i]->value;
    if (i + 1 == shown.size() || shown[i + 1]->source != shown[i]->source) text += " (" + shown[i]->source + ")";
  }
  return text;
}

}  // namespace vllm::app
