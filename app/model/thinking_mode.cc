#include "app/model/thinking_mode.h"

#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/parse_value.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

struct ModeName {
  std::string_view name;
  ThinkMode mode;
  int64_t
      thinking_budget;  // the template variable of Seed-OSS, whose model was trained with such numbers; -1: no limit
};

constexpr std::array<ModeName, 5> kModes = {{{"off", ThinkMode::kOff, 0},
                                             {"on", ThinkMode::kOn, -1},
                                             {"low", ThinkMode::kLow, 1024},
                                             {"medium", ThinkMode::kMedium, 4096},
                                             {"high", ThinkMode::kHigh, 16384}}};

const ModeName& NameOf(ThinkMode mode) {
  for (const ModeName& known : kModes) {
    if (known.mode == mode) return known;
  }
  return kModes[1];
}

}  // namespace

ThinkMode ParseThinkMode(std::string_view name) {
  if (name.empty()) return ThinkMode::kDefault;
  for (const ModeName& known : kModes) {
    if (known.name == name) return known.mode;
  }
  throw ConfigError("think: must be on, off, low, medium or high (" + std::string(name) + ")");
}

ThinkSwitch MakeThinkSwitch(ThinkMode mode, const PromptRenderer& renderer) {
  ThinkSwitch result;
  if (mode == ThinkMode::kDefault) return result;
  const ModeName& name = NameOf(mode);
  const bool is_off = mode == ThinkMode::kOff;
  const bool has_level = mode != ThinkMode::kOff && mode != ThinkMode::kOn;
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  bool can_switch = false;
  for (const char* variable : {"enable_thinking", "thinking"}) {
    if (!renderer.UsesVariable(variable)) continue;
    variables[variable] = !is_off;
    can_switch = true;
  }
  const bool has_budget = renderer.UsesVariable("thinking_budget");
  if (has_budget && mode != ThinkMode::kOn) variables["thinking_budget"] = name.thinking_budget;
  const bool has_effort = renderer.UsesVariable("reasoning_effort");
  const std::string& source = renderer.source().text;
  const bool has_no_effort = source.find("'none'") != std::string::npos || source.find("\"none\"") != std::string::npos;
  if (has_effort && has_level) variables["reasoning_effort"] = name.name;
  if (has_effort && is_off) variables["reasoning_effort"] = has_no_effort ? "none" : "low";
  if (!variables.empty()) result.variables_json = DumpJson(variables);

  const bool is_known = can_switch || has_budget || has_effort;
  if (is_off && !can_switch && !has_budget && !(has_effort && has_no_effort)) {
    result.note =
        "the chat template cannot switch thinking off; it is only hidden (--thinking-budget 0 ends it at once)";
  } else if (!is_known) {
    result.note = "the chat template has no thinking switch";
  } else if (has_level && !has_effort && !has_budget) {
    result.note = "the chat template has no levels of thinking; " + std::string(name.name) + " means on";
  }
  return result;
}

std::shared_ptr<const ReasoningFormat> ChooseReasoningFormat(
    const Settings& settings, const PromptRenderer* renderer,
    const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer) {
  const std::string name = settings.Text("reasoning-parser").value_or("auto");
  if (name == "none" || (tokenizer == nullptr && name == "auto")) return nullptr;
  if (name == "auto") return DetectReasoningFormat(renderer == nullptr ? "" : renderer->source().text, tokenizer);
  const ReasoningFamily* family = FindReasoningFamily(name);
  if (family == nullptr) {
    std::vector<std::string> known = {"auto", "none"};
    std::string list = "auto, none";
    for (const ReasoningFamily& one : ReasoningFamilies()) {
      known.emplace_back(one.name);
      list += ", " + std::string(one.name);
    }
    const std::string near = NearestName(name, known);
    throw ConfigError("--reasoning-parser: unknown (" + name + "); " +
                      (near.empty() ? "known are " + list : "did you mean " + near + "?"));
  }
  std::shared_ptr<const ReasoningFormat> format =
      tokenizer == nullptr ? nullptr : MakeReasoningFormat(*family, /*by_name=*/true, tokenizer);
  if (format == nullptr) {
    throw ConfigError("--reasoning-parser " + name +
                      ": the model's tokenizer does not have the markers of this format");
  }
  return format;
}

void ApplyThinkSetting(const Settings& settings, PromptRenderer* renderer) {
  const ThinkMode mode = ParseThinkMode(settings.Text("think").value_or(""));
  if (renderer == nullptr || mode == ThinkMode::kDefault) return;
  ThinkSwitch think = MakeThinkSwitch(mode, *renderer);
  renderer->SetThinkVariables(std::move(think.variables_json));
  if (!think.note.empty()) PrintWarning("--think: " + think.note);
}

}  // namespace vllm::app
