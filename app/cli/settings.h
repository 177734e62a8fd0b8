// Settings: what flags, environment and configuration file say together, one value (or list) a flag with its source.
// Filled once at start-up, then read-only. Texts are checked against the flag's kind as they come in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/flag.h"

namespace vllm {

enum class SettingSource : uint8_t { kDefault, kConfigFile, kEnvironment, kCommandLine, kChat };

// "default", "configuration file", "environment", "command line", "/set".
std::string_view ToString(SettingSource source);

class Settings {
 public:
  // A higher source replaces a lower one; `where` is for messages: "--top-p", "config.toml: top-p". Throws ConfigError
  // `<where>: <why> (<value>)`.
  void Set(const Flag& flag, std::vector<std::string> values, SettingSource source, const std::string& where);

  // The flags below must be in the table and of the kind asked for.
  bool Has(std::string_view name) const;
  bool Switch(std::string_view name) const;  // the default when not set
  std::optional<int64_t> Integer(std::string_view name) const;
  std::optional<uint64_t> Unsigned(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;
  std::optional<int64_t> Size(std::string_view name) const;
  std::optional<std::string> Text(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  std::vector<int32_t> Ids(std::string_view name) const;
  std::vector<std::pair<int32_t, float>> Biases(std::string_view name) const;

  SettingSource SourceOf(std::string_view name) const;
  const std::vector<std::string>* Values(std::string_view name) const;

  Command command = Command::kChat;
  std::vector<std::string> arguments;  // what is not a flag
  std::string config_path;             // the file that was read, empty: none

 private:
  struct Entry {
    std::vector<std::string> values;
    SettingSource source;
  };
  const Entry* Find(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace vllm
