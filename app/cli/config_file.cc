#include "app/cli/config_file.h"

#include <algorithm>
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
constexpr size_t kMaxServerNameBytes = 30;
constexpr double kMaxTimeoutSeconds = 86400;

bool IsServerNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

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

// Reads a table such as [mcp.files].
void AddMcpServer(const TomlTable& table, const TomlDocument& document, const std::string& path, Settings& settings) {
  const std::string name = "[mcp." + Escape(table.subtable, kMaxShownBytes) + "]";
  const auto fail = [&](const TomlPosition& position, const std::string& why) {
    throw ConfigError(Escape(path) + ":" + position.Text() + ": " + name + " " + why);
  };
  if (table.subtable.empty() || table.subtable.size() > kMaxServerNameBytes ||
      !std::all_of(table.subtable.begin(), table.subtable.end(), IsServerNameCharacter)) {
    fail(table.position, "the name may have only letters, digits, _ and -, at most 30");
  }
  McpServerSetting server;
  server.name = table.subtable;
  for (const TomlEntry& entry : document.entries) {
    if (entry.table != table.name || entry.subtable != table.subtable) continue;
    const bool is_scalar = !entry.is_array && !entry.is_inline_table;
    if (entry.key == "command") {
      if (!entry.is_array || entry.values.empty() || entry.values[0].empty()) {
        fail(entry.position, "command: must be an array, the program and its arguments");
      }
      server.command = entry.values;
    } else if (entry.key == "env") {
      if (!entry.is_inline_table) fail(entry.position, "env: must be a table such as {TOKEN = \"x\"}");
      for (size_t i = 0; i < entry.values.size(); i += 2) {
        server.environment.emplace_back(entry.values[i], entry.values[i + 1]);
      }
    } else if (entry.key == "timeout") {
      try {
        server.timeout_seconds = is_scalar ? ParseNumber(entry.values[0]) : 0;
      } catch (const ConfigError&) {
        server.timeout_seconds = 0;
      }
      if (!(server.timeout_seconds > 0 && server.timeout_seconds <= kMaxTimeoutSeconds)) {
        fail(entry.position, "timeout: must be a number of seconds above 0, at most 86400");
      }
    } else if (entry.key == "protocol") {
      server.protocol = is_scalar ? entry.values[0] : "";
      if (server.protocol != "auto" && server.protocol != "legacy" && server.protocol != "2026-07-28") {
        fail(entry.position, "protocol: must be auto, legacy or 2026-07-28");
      }
    } else {
      fail(entry.position,
           Escape(entry.key, kMaxShownBytes) + ": unknown key; a server has command, env, timeout and protocol");
    }
  }
  if (server.command.empty()) fail(table.position, "command is missing");
  settings.mcp_servers.push_back(std::move(server));
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
  const TomlDocument document = ReadToml(text, path, kMcpTable);
  settings.config_path = path;
  for (const TomlTable& table : document.tables) {
    if (FindCommand(table.name)) continue;
    if (table.name == kMcpTable && !table.subtable.empty()) {
      AddMcpServer(table, document, path, settings);
      continue;
    }
    throw ConfigError(Escape(path) + ":" + table.position.Text() + ": [" + Escape(table.name, kMaxShownBytes) +
                      "]: unknown command");
  }
  // The command's own table overrides the top-level keys. The tables of other commands are checked too, so that a
  // mistake is reported now and not when one of those commands first runs.
  const std::string_view own_table = CommandInfoOf(settings.command).name;
  for (const bool is_top : {true, false}) {
    for (const TomlEntry& entry : document.entries) {
      if (entry.table.empty() != is_top || entry.table == kMcpTable) continue;
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
