#include "app/config/config_file.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <toml.hpp>

#include "app/config/parse_value.h"
#include "app/config/xdg.h"
#include "engine/config/errors.h"

namespace vllm {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 16;  // toml11 recurses on nested arrays and tables

std::string ReadWhole(const std::string& path, std::ifstream& file) {
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) throw ConfigError(path + ": too long (limit 1 MiB)");
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') depth = std::max(0, depth - 1);
    if (c == '\n' && depth < kMaxDepth) continue;
    if (depth > kMaxDepth) throw ConfigError(path + ": nested too deeply (limit 16)");
  }
  return text;
}

std::string ScalarText(const toml::value& value, const std::string& where) {
  switch (value.type()) {
    case toml::value_t::boolean:
      return value.as_boolean() ? "true" : "false";
    case toml::value_t::integer:
      return std::to_string(value.as_integer());
    case toml::value_t::floating: {
      std::ostringstream text;
      text.precision(17);
      text << value.as_floating();
      return text.str();
    }
    case toml::value_t::string:
      return value.as_string().str;
    default:
      throw ConfigError(where + ": must be a text, a number, a truth value or an array of these");
  }
}

void ApplyTable(const toml::table& table, const std::string& path, bool is_top, Settings& settings) {
  for (const auto& [key, value] : table) {
    const std::string where = path + ": " + key;
    if (is_top && value.is_table()) {
      if (!FindCommand(key)) throw ConfigError(where + ": no command has this name");
      continue;
    }
    const Flag* flag = FindFlag(key);
    if (flag == nullptr || !flag->in_config) {
      std::vector<std::string> names;
      for (const Flag& known : FlagTable()) {
        if (known.in_config) names.emplace_back(known.name);
      }
      const std::string near = NearestName(key, names);
      throw ConfigError(where + ": unknown key" + (near.empty() ? "" : ", did you mean " + near + "?"));
    }
    std::vector<std::string> values;
    if (value.is_array()) {
      if (!flag->repeats && flag->kind != ValueKind::kIds) throw ConfigError(where + ": must be one value");
      for (const toml::value& element : value.as_array()) values.push_back(ScalarText(element, where));
    } else {
      values.push_back(ScalarText(value, where));
    }
    // A key of another command is checked, then left alone.
    Settings elsewhere;
    // `show` reports the sampling that the generating commands will use.
    const bool is_shown = settings.command == Command::kConfig ||
                          (settings.command == Command::kShow && flag->group == FlagGroup::kSampling);
    Settings& target = flag->belongs_to(settings.command) || is_shown ? settings : elsewhere;
    target.Set(*flag, std::move(values), SettingSource::kConfigFile, where);
  }
}

}  // namespace

void ReadConfigFile(const std::string& given_path, Settings& settings) {
  std::string path = given_path;
  if (path.empty()) {
    const std::string home = ConfigHome();
    if (home.empty()) return;
    path = home + "/config.toml";
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (given_path.empty()) return;
    throw ConfigError(path + ": cannot be read");
  }
  const std::string text = ReadWhole(path, file);
  std::istringstream stream(text);
  toml::value root;
  try {
    root = toml::parse(stream, path);
  } catch (const std::exception& error) {
    // toml11 draws a picture of the place over many lines; its first line says what is wrong.
    const std::string message = error.what();
    throw ConfigError(path + ": " + message.substr(0, message.find('\n')));
  }
  settings.config_path = path;
  const toml::table& table = root.as_table();
  ApplyTable(table, path, true, settings);
  const auto section = table.find(std::string(InfoOf(settings.command).name));
  if (section != table.end() && section->second.is_table()) {
    ApplyTable(section->second.as_table(), path + " [" + section->first + "]", false, settings);
  }
  // The other sections are checked too, so that a mistake shows at once and not on the day it is used.
  for (const auto& [key, value] : table) {
    if (!value.is_table() || key == InfoOf(settings.command).name) continue;
    Settings unused;
    unused.command = *FindCommand(key);
    ApplyTable(value.as_table(), path + " [" + key + "]", false, unused);
  }
}

}  // namespace vllm
