#include "app/presets/preset_prompt.h"

#include <algorithm>
#include <utility>

#include "app/cli/parse_value.h"
#include "app/presets/preset_store.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxShownBytes = 60;

std::string Joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

PresetPrompt::PresetPrompt(Preset preset, const std::vector<std::string>& assignments) : preset_(std::move(preset)) {
  const std::vector<std::string> variables = preset_.Variables();
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError("--param: must be NAME=VALUE (" + Escape(assignment, kMaxShownBytes) + ")");
    }
    const std::string name = assignment.substr(0, equals);
    if (name == kInputName) throw ConfigError("--param: input is the user's text and cannot be set");
    if (std::find(variables.begin(), variables.end(), name) == variables.end()) {
      const std::string near = NearestName(name, variables);
      throw ConfigError("--param: preset " + preset_.name + " has no variable " + Escape(name, kMaxShownBytes) +
                            (near.empty() ? "" : "; did you mean " + near + "?"),
                        variables.empty() ? "this preset has no variables" : "its variables are " + Joined(variables));
    }
    given_[name] = assignment.substr(equals + 1);
  }
}

const std::string* PresetPrompt::ValueOf(std::string_view name) const {
  if (const auto given = given_.find(name); given != given_.end()) return &given->second;
  for (const auto& [known, value] : preset_.defaults) {
    if (known == name) return &value;
  }
  return nullptr;
}

void PresetPrompt::MissingVariable(const std::string& name) const {
  throw ConfigError("preset " + preset_.name + ": the variable " + name + " has no value",
                    "set it with -p " + name + "=VALUE; in a chat, /preset " + preset_.name + " " + name + "=VALUE");
}

std::string PresetPrompt::System() const {
  if (!preset_.system) return "";
  std::vector<std::string_view> values;
  for (const std::string& name : preset_.system->names()) {
    const std::string* value = ValueOf(name);
    if (value == nullptr) MissingVariable(name);
    values.emplace_back(*value);
  }
  return preset_.system->Fill(values);
}

void PresetPrompt::CheckVariables(const std::vector<std::string>& columns) const {
  if (!preset_.prompt) return;
  for (const std::string& name : preset_.prompt->names()) {
    const bool is_column = std::find(columns.begin(), columns.end(), name) != columns.end();
    if (name != kInputName && !is_column && ValueOf(name) == nullptr) MissingVariable(name);
  }
}

std::string PresetPrompt::Fill(std::string_view input, std::span<const std::string> columns,
                               std::span<const std::string> fields) const {
  if (!preset_.prompt) return std::string(input);
  std::vector<std::string_view> values;
  for (const std::string& name : preset_.prompt->names()) {
    const auto column = std::find(columns.begin(), columns.end(), name);
    if (name == kInputName) {
      values.push_back(input);
    } else if (column != columns.end() && !given_.contains(name)) {
      values.emplace_back(fields[static_cast<size_t>(column - columns.begin())]);
    } else {
      values.emplace_back(*ValueOf(name));
    }
  }
  std::string prompt = preset_.prompt->Fill(values);
  if (!takes_input() && !input.empty()) prompt.append("\n").append(input);
  return prompt;
}

std::optional<std::string> PresetPrompt::InputOf(const std::string& text) const {
  if (!takes_input()) return std::nullopt;
  // U+FFFF is not a character, so neither a preset nor a value contains this mark unless somebody looks for trouble.
  // Even then the result is only a wrong draft.
  constexpr std::string_view kMark = "\xEF\xBF\xBF";
  const std::string marked = Fill(kMark);
  const size_t at = marked.find(kMark);
  if (at == std::string::npos || marked.find(kMark, at + 1) != std::string::npos) return std::nullopt;
  const std::string_view before = std::string_view(marked).substr(0, at);
  const std::string_view after = std::string_view(marked).substr(at + kMark.size());
  if (text.size() < before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) {
    return std::nullopt;
  }
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

PresetPrompt UsePreset(const std::string& name, const std::vector<std::string>& assignments, Settings& settings) {
  PresetPrompt prompt(LoadPreset(name), assignments);
  const std::string system = prompt.System();
  settings.Remove(SettingSource::kPreset);
  for (const Preset::Setting& setting : prompt.preset().settings) {
    // A key that belongs only to other commands is validated and not used, as in the configuration file.
    if (!setting.flag->belongs_to(settings.command)) continue;
    settings.Set(*setting.flag, setting.values, SettingSource::kPreset, setting.where);
  }
  if (!system.empty()) settings.Set(*FindFlag("system"), {system}, SettingSource::kPreset, "preset " + name);
  return prompt;
}

std::optional<PresetPrompt> PresetOf(Settings& settings) {
  if (settings.Has("preset")) return UsePreset(*settings.Text("preset"), settings.Texts("param"), settings);
  if (settings.Has("param")) {
    throw ConfigError("--param: sets a variable of a preset, but there is no --preset",
                      "vllmcli presets list shows the presets");
  }
  return std::nullopt;
}

}  // namespace vllm::app
