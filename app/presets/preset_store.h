// Finds presets: the user's files $XDG_CONFIG_HOME/vllmcli/presets/NAME.toml, then those that ship with the program. A
// user's file hides a shipped preset of the same name. Pure functions of the file system and the environment; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/presets/preset.h"

namespace vllm::app {

// Returns true if `name` may be the name of a preset: 1 to 64 letters, digits, '.', '_' and '-', with a letter or digit
// first. Such a name cannot lead out of the directory. "off" is no name, because /preset off ends the use of a preset.
bool IsPresetName(std::string_view name);
// Throws ConfigError if `name` is not the name of a preset.
void CheckPresetName(const std::string& name);

// Returns the directory of the user's presets, or "" if neither XDG_CONFIG_HOME nor HOME is an absolute path.
std::string PresetDirectory();
// Returns the path of the user's file for this preset, which may not exist. REQUIRES: IsPresetName(name). Throws
// ConfigError if there is no directory.
std::string PresetPath(const std::string& name);
// Returns the text of the user's file, or nullopt if there is none. Throws ConfigError, ResourceError.
std::optional<std::string> ReadUserPreset(const std::string& name);
// Returns the text of a preset that ships with the program, or nullopt.
std::optional<std::string> ShippedPresetText(std::string_view name);

struct PresetSummary {
  std::string name;
  std::string description;  // one line; empty if there is none or the file is invalid
  std::vector<std::string> variables;
  bool is_users = false;       // false: shipped
  bool hides_shipped = false;  // a user's file with the name of a shipped preset
  std::string error;           // why the file is invalid; empty: it is valid
};

// Returns the description and the names of the variables, such as "translate text [language]", or why the file is
// invalid.
std::string SummaryText(const PresetSummary& summary);

// Returns the presets by name, at most 1000 of the user's. For lists and completion.
std::vector<PresetSummary> ListPresets();

// Reads a preset. Throws ConfigError if there is none or it is invalid, ResourceError.
Preset LoadPreset(const std::string& name);

}  // namespace vllm::app
