// Settings holds the values set by flags, the environment and the configuration file: one value or list per flag, with
// its source. A plain value, filled at startup; the chat's /set changes a copy. Main thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/flag.h"

namespace vllm::app {

// In ascending order of precedence. A preset is chosen for one task, so it overrides the configuration file and the
// environment, which hold for all tasks. A flag is typed for this one run, so it overrides the preset.
enum class SettingSource : uint8_t { kDefault, kConfigFile, kEnvironment, kPreset, kCommandLine, kChat };

// Returns "default", "configuration file", "environment", "preset", "command line" or "/set".
std::string_view SettingSourceName(SettingSource source);

// An MCP server of the configuration file; see config_file.h.
struct McpServerSetting {
  std::string name;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  double timeout_seconds = 30;
  std::string protocol = "auto";
};

class Settings {
 public:
  // Sets a flag, unless `values` is empty. If several sources set a flag, the one of highest precedence (the last in
  // SettingSource) counts. `where` names the setting in messages: "--top-p", "config.toml:1:1: top-p". Throws
  // ConfigError `<where>: <why> (<value>)` if a value does not fit the flag's kind.
  void Set(const Flag& flag, std::vector<std::string> values, SettingSource source, const std::string& where);
  // Removes what `source` has set. What it has overridden counts again.
  void Remove(SettingSource source);

  // Unless their comments say otherwise, the getters below return nullopt or an empty list if the flag is not set.
  // REQUIRES: `name` is the long name of a flag whose kind matches the getter.
  bool Has(std::string_view name) const;
  bool Switch(std::string_view name) const;  // if not set: the default in the flag table
  std::optional<int64_t> Integer(std::string_view name) const;
  std::optional<uint64_t> Unsigned(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;
  std::optional<int64_t> Size(std::string_view name) const;
  std::optional<std::string> Text(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  std::vector<int32_t> Ids(std::string_view name) const;
  std::vector<std::pair<int32_t, float>> Biases(std::string_view name) const;

  SettingSource SourceOf(std::string_view name) const;                  // kDefault if not set
  const std::vector<std::string>* Values(std::string_view name) const;  // null if not set

  Command command = Command::kChat;
  std::vector<std::string> arguments;  // positional arguments
  std::string config_path;             // the file that was read; empty: none
  std::vector<McpServerSetting> mcp_servers;

 private:
  struct Entry {
    std::vector<std::string> values;
    SettingSource source;
  };
  // Returns the entry that counts, or null.
  const Entry* Find(std::string_view name) const;

  // The entries of a flag, at most one per source, in ascending order of precedence; at least one.
  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};

}  // namespace vllm::app
