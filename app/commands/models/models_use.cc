#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "app/cli/config_file.h"
#include "app/cli/edit_file.h"
#include "app/cli/toml/toml_editor.h"
#include "app/cli/toml/toml_reader.h"
#include "app/cli/xdg.h"
#include "app/commands/models/models_actions.h"
#include "app/installed/find_model.h"
#include "app/installed/model_aliases.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr std::string_view kKey = "model";

std::string ConfigPath(const Settings& settings) {
  if (const auto given = settings.Text("config"); given && !given->empty()) return *given;
  const std::string home = ConfigHome();
  if (home.empty()) throw ConfigError("models use: neither XDG_CONFIG_HOME nor HOME is an absolute path");
  return home + "/config.toml";
}

// Returns the text for the configuration file: an absolute path, because the file applies in every directory, or the
// name. Throws ConfigError, ModelError.
std::string SettingOf(const std::string& name, std::string& note) {
  try {
    const ModelLocation location = FindModel(name);
    const bool is_path = location.origin == "directory" || location.origin == "file";
    // An alias stays an alias, so that changing it changes the default.
    if (is_path && !FindModelAlias(name)) return std::filesystem::absolute(location.path()).lexically_normal().string();
  } catch (const MissingModelError& error) {
    note = "it is not installed; " + error.hint();
  }
  return name;
}

// Warns if something else than the changed line decides which model is used.
void WarnOfOthers(const std::string& text, const std::string& path, const Settings& settings) {
  if (settings.SourceOf(kKey) == SettingSource::kEnvironment) {
    PrintWarning("VLLMCLI_MODEL is set and overrides the configuration file");
  }
  for (const TomlEntry& entry : ReadToml(text, path, kMcpTable).entries) {
    if (entry.key == kKey && !entry.table.empty()) {
      PrintWarning("the table [" + entry.table + "] of " + path + " sets another model for this command");
    }
  }
}

}  // namespace

int UseModelAction(const std::string& name, const Settings& settings) {
  if (settings.Has("revision")) {
    throw ConfigError("models use: cannot keep a --revision", "give --revision to the command that uses the model");
  }
  const std::string path = ConfigPath(settings);
  std::string note;
  const bool is_shipped = name == kShippedModelName;
  const std::string setting = is_shipped ? "" : SettingOf(name, note);
  std::string edited;
  EditFile(path, kMaxConfigFileBytes, [&](const std::string& text) {
    edited = is_shipped ? RemoveTomlKey(text, kKey, path) : SetTomlString(text, kKey, setting, path);
    return edited;
  });
  PrintStatus((is_shipped ? "the default is the bundled model again" : "the default is now " + setting) + " (" + path +
              ")" + (note.empty() ? "" : "; " + note));
  WarnOfOthers(edited, path, settings);
  return 0;
}

}  // namespace vllm::app
