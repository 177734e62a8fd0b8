// PresetPrompt: a preset in use, with the values of its variables. It makes prompts from the user's texts. An immutable
// value; any thread. UsePreset and PresetOf change only their arguments.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/settings.h"
#include "app/presets/preset.h"

namespace vllm::app {

class PresetPrompt {
 public:
  // `assignments` are NAME=VALUE, as for -p. Throws ConfigError if one is malformed or names no variable of the preset.
  PresetPrompt(Preset preset, const std::vector<std::string>& assignments);

  const Preset& preset() const { return preset_; }
  // Returns true if the prompt contains {input}.
  bool takes_input() const { return preset_.prompt && preset_.prompt->Uses(kInputName); }
  // Returns the system message, or "" if there is none. Throws ConfigError if a variable has no value.
  std::string System() const;
  // Throws ConfigError unless each variable of the prompt has a value or is one of `columns`.
  void CheckVariables(const std::vector<std::string>& columns = {}) const;

  // Returns the prompt for the user's text: with {input}, the prompt around it; without, the prompt, a line break and
  // the text; without a prompt, the text. `fields` are the values of `columns`; the values of `assignments` have
  // precedence over them. REQUIRES: CheckVariables(columns) has succeeded.
  std::string Fill(std::string_view input, std::span<const std::string> columns = {},
                   std::span<const std::string> fields = {}) const;
  // The inverse of Fill for a prompt that contains {input} once: returns the user's text, or nullopt if this preset and
  // these values have not made `text`.
  std::optional<std::string> InputOf(const std::string& text) const;

 private:
  // Returns the value of a variable, or null.
  const std::string* ValueOf(std::string_view name) const;
  [[noreturn]] void MissingVariable(const std::string& name) const;

  Preset preset_;
  std::map<std::string, std::string, std::less<>> given_;  // the assignments
};

// Loads the preset `name` and adds its settings for settings.command to `settings`, with the source kPreset, instead of
// those of an earlier preset. Throws ConfigError, ResourceError.
PresetPrompt UsePreset(const std::string& name, const std::vector<std::string>& assignments, Settings& settings);

// Applies --preset with the values of --param, if it is set. Throws as UsePreset, and if --param is set without it.
std::optional<PresetPrompt> PresetOf(Settings& settings);

}  // namespace vllm::app
