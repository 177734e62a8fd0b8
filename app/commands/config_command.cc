#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app/cli/flag.h"
#include "app/cli/xdg.h"
#include "app/commands/commands.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {
namespace {

std::string Joined(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + value;
  return out;
}

}  // namespace

int ConfigCommand(const Settings& settings) {
  const bool as_json = settings.Switch("json");
  nlohmann::ordered_json json;
  std::string out =
      "# file: " +
      (settings.config_path.empty() ? "none (looked for " + ConfigHome() + "/config.toml)" : settings.config_path) +
      "\n";
  for (const Flag& flag : FlagTable()) {
    if (!flag.in_config) continue;
    const std::vector<std::string>* values = settings.Values(flag.name);
    const std::string value = values != nullptr ? Joined(*values) : std::string(flag.default_value);
    const std::string_view source = SettingSourceName(settings.SourceOf(flag.name));
    if (as_json) {
      nlohmann::ordered_json entry;
      entry["value"] = values == nullptr && value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
      entry["source"] = source;
      json[std::string(flag.name)] = std::move(entry);
    } else {
      std::string line = std::string(flag.name) + " = " + (value.empty() ? "(none)" : value);
      if (line.size() < 44) line.append(44 - line.size(), ' ');
      out += line + "  # " + std::string(source) + "\n";
    }
  }
  if (as_json) {
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
  } else {
    StandardOutput().Write(SafeText(out));
  }
  return 0;
}

}  // namespace vllm::app
