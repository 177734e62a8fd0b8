#include "app/cli/config_file.h"

#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/parse_value.h"
#include "app/cli/toml/toml_reader.h"
#include "app/cli/xdg.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxShownBytes = 60;

// REQUIRES: the entry's table is empty or names a command.
void Apply(const TomlEntry& entry, const std::string& path, Settings& settings) {
  const std::string table = entry.table.empty() ? "" : "[" + entry.table + "] ";
  const std::string where =
      Escape(path) + ":" + entry.position.Text() + ": " + table + Escape(entry.key, kMaxShownBytes);
  const Flag* flag = FindFlag(entry.key);
  if (flag == nullptr || !flag->in_config) {
    std::vector<std::string> names;
    for (const Flag& known : FlagTable()) {
      if (known.in_config) names.emplace_back(known.name);
    }
    const std::string near = NearestName(entry.key, names);
    throw ConfigError(where + ": unknown key" + (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  if (entry.is_array && !flag->repeats && flag->kind != ValueKind::kIds) {
    throw ConfigError(where + ": must be a single value, not an array");
  }
  // A key that belongs only to other commands is validated and discarded.
  Settings discarded;
  // `show` reports the sampling parameters that the generating commands will use, and `models` marks their model.
  const bool is_shown = settings.command == Command::kConfig ||
                        (settings.command == Command::kShow && flag->group == FlagGroup::kSampling) ||
                        (settings.command == Command::kModels && flag->name == "model");
  const bool is_used = flag->belongs_to(settings.command) || is_shown;
  (is_used ? settings : discarded).Set(*flag, entry.values, SettingSource::kConfigFile, where);
}

}  // namespace

void ReadConfigFile(const std::string& given_path, Settings& settings) {
  std::string path = given_path;
  if (path.empty()) {
    const std::string home = ConfigHome();
    if (home.empty()) return;
    path = home + "/config.toml";
  }
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxConfigFileBytes, text);
  if (file.is_missing() && given_path.empty()) return;
  const std::string message = "configuration file " + Escape(path) + ": " + file.error;
  if (file.is_out_of_resources()) throw ResourceError(message);
  if (!file.ok()) throw ConfigError(message);
  const TomlDocument document = ReadToml(text, path);
  settings.config_path = path;
  for (const TomlTable& table : document.tables) {
    if (FindCommand(table.name)) continue;
    throw ConfigError(Escape(path) + ":" + table.position.Text() + ": [" + Escape(table.name, kMaxShownBytes) +
                      "]: unknown command");
  }
  // The command's own table overrides the top-level keys. The tables of other commands are checked too, so that a
  // mistake is reported now and not when one of those commands first runs.
  const std::string_view own_table = CommandInfoOf(settings.command).name;
  for (const bool is_top : {true, false}) {
    for (const TomlEntry& entry : document.entries) {
      if (entry.table.empty() != is_top) continue;
      if (is_top || entry.table == own_table) {
        Apply(entry, path, settings);
      } else {
        Settings unused;
        unused.command = *FindCommand(entry.table);
        Apply(entry, path, unused);
      }
    }
  }
}

}  // namespace vllm::app
