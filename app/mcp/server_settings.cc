#include "app/mcp/server_settings.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

McpServerSpec SpecOf(const McpServerSetting& setting) {
  McpServerSpec spec;
  spec.name = setting.name;
  spec.command = {setting.command, setting.environment};
  spec.timeout = std::chrono::milliseconds(static_cast<int64_t>(setting.timeout_seconds * 1000 + 0.5));
  if (setting.protocol == "legacy") spec.protocol = McpServerSpec::Protocol::kLegacy;
  if (setting.protocol == "2026-07-28") spec.protocol = McpServerSpec::Protocol::kStateless;
  return spec;
}

}  // namespace

std::vector<std::string> SplitCommand(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool has_word = false;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool is_escape = c == '\\' && quote != '\'' && i + 1 < command.size();
    if (is_escape && (quote == 0 || command[i + 1] == '"' || command[i + 1] == '\\')) {
      word += command[++i];
      has_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      has_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (has_word) words.push_back(std::exchange(word, ""));
      has_word = false;
    } else {
      word += c;
      has_word = true;
    }
  }
  if (quote != 0) throw ConfigError("--mcp: a quotation mark is not closed");
  if (has_word) words.push_back(std::move(word));
  return words;
}

std::vector<McpServerSpec> McpServers(const Settings& settings) {
  std::vector<McpServerSpec> servers;
  const std::vector<std::string> commands = settings.Texts("mcp");
  if (std::find(commands.begin(), commands.end(), "off") != commands.end()) return servers;
  for (const McpServerSetting& setting : settings.mcp_servers) servers.push_back(SpecOf(setting));
  for (size_t i = 0; i < commands.size(); ++i) {
    McpServerSetting setting;
    setting.name = "mcp" + std::to_string(i + 1);
    setting.command = SplitCommand(commands[i]);
    if (setting.command.empty() || setting.command[0].empty()) throw ConfigError("--mcp: the command is empty");
    servers.push_back(SpecOf(setting));
  }
  return servers;
}

}  // namespace vllm::app
