#include "app/presets/preset.h"

#include <algorithm>

#include "app/cli/parse_value.h"
#include "app/cli/settings.h"
#include "app/cli/toml/toml_reader.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxShownBytes = 60;
constexpr size_t kMaxVariableBytes = 64;
constexpr std::string_view kVariablesTable = "variables";

bool IsVariableName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || name.size() > kMaxVariableBytes || !is_letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

bool IsPresetFlag(const Flag& flag) {
  const bool is_of_preset = flag.name == "model" || flag.name == "tools" || flag.name == "tool-choice";
  return flag.in_config && (is_of_preset || flag.group == FlagGroup::kSampling);
}

[[noreturn]] void UnknownKey(const std::string& key, const std::string& where) {
  std::vector<std::string> known = {"description", "system", "prompt"};
  for (const Flag& flag : FlagTable()) {
    if (IsPresetFlag(flag)) known.emplace_back(flag.name);
  }
  const std::string near = NearestName(key, known);
  throw ConfigError(where + ": unknown key" + (near.empty() ? "" : "; did you mean " + near + "?"),
                    "a preset has description, system, prompt, model, tools, tool-choice, the names of sampling flags "
                    "such as schema, and [variables]");
}

// Parses a text that may use variables.
PromptTemplate ParseText(const TomlEntry& entry, const std::string& where) {
  PromptTemplate text(entry.values[0], where);
  for (const std::string& name : text.names()) {
    if (IsVariableName(name)) continue;
    throw ConfigError(where + ": {" + Escape(name, kMaxShownBytes) + "} is not the name of a variable",
                      "write {{ and }} for literal braces");
  }
  return text;
}

void ReadEntry(const TomlEntry& entry, const std::string& where, Preset& preset) {
  const Flag* flag = FindFlag(entry.key);
  const bool is_setting = flag != nullptr && IsPresetFlag(*flag);
  const bool is_text = entry.key == "description" || entry.key == "system" || entry.key == "prompt";
  if (!is_setting && !is_text) UnknownKey(entry.key, where);
  if (entry.is_array && (is_text || (!flag->repeats && flag->kind != ValueKind::kIds))) {
    throw ConfigError(where + ": must be a single value, not an array");
  }
  if (entry.key == "description") {
    preset.description = entry.values[0];
  } else if (entry.key == "system") {
    preset.system = ParseText(entry, where);
    if (preset.system->Uses(kInputName)) throw ConfigError(where + ": {input} is allowed only in prompt");
  } else if (entry.key == "prompt") {
    preset.prompt = ParseText(entry, where);
  } else {
    Settings checked;
    checked.Set(*flag, entry.values, SettingSource::kPreset, where);
    preset.settings.push_back({flag, entry.values, where});
  }
}

}  // namespace

std::vector<std::string> Preset::Variables() const {
  std::vector<std::string> names;
  for (const std::optional<PromptTemplate>* part : {&system, &prompt}) {
    if (!*part) continue;
    for (const std::string& used : (*part)->names()) {
      if (used != kInputName && std::find(names.begin(), names.end(), used) == names.end()) names.push_back(used);
    }
  }
  return names;
}

Preset ParsePreset(const std::string& name, const std::string& text, const std::string& file) {
  const TomlDocument document = ReadToml(text, file);
  const auto where_of = [&](const TomlPosition& position, const std::string& key) {
    return Escape(file) + ":" + position.Text() + ": " + key;
  };
  for (const TomlTable& table : document.tables) {
    if (table.name == kVariablesTable) continue;
    throw ConfigError(where_of(table.position, "[" + Escape(table.name, kMaxShownBytes) + "]") +
                      ": unknown table; a preset has only [variables]");
  }
  Preset preset;
  preset.name = name;
  preset.text = text;
  for (const TomlEntry& entry : document.entries) {
    if (!entry.table.empty()) continue;
    ReadEntry(entry, where_of(entry.position, Escape(entry.key, kMaxShownBytes)), preset);
  }
  const std::vector<std::string> variables = preset.Variables();
  for (const TomlEntry& entry : document.entries) {
    if (entry.table.empty()) continue;
    const std::string where = where_of(entry.position, "[variables] " + Escape(entry.key, kMaxShownBytes));
    if (entry.is_array) throw ConfigError(where + ": must be a single value, not an array");
    if (entry.key == kInputName) throw ConfigError(where + ": input is the user's text and has no default");
    if (std::find(variables.begin(), variables.end(), entry.key) == variables.end()) {
      const std::string near = NearestName(entry.key, variables);
      throw ConfigError(where + ": neither system nor prompt uses this variable" +
                        (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    preset.defaults.emplace_back(entry.key, entry.values[0]);
  }
  return preset;
}

}  // namespace vllm::app
