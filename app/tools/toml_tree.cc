#include "app/tools/toml_tree.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <toml.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// toml11 calls itself for each level.
constexpr int kMaxDepth = 32;

// Returns the position after the string that begins at `begin`, or that of its first line break if it has one line.
size_t SkipString(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const bool is_long = text.substr(begin).starts_with(std::string(3, quote));
  size_t i = begin + (is_long ? 3 : 1);
  while (i < text.size()) {
    if (quote == '"' && text[i] == '\\') {
      i += 2;
    } else if (text[i] == quote && (!is_long || text.substr(i).starts_with(std::string(3, quote)))) {
      return i + (is_long ? 3 : 1);
    } else if (!is_long && text[i] == '\n') {
      return i;
    } else {
      ++i;
    }
  }
  return text.size();
}

// Returns the greatest number of brackets that are open at once, plus the greatest number of dots in a line. That is at
// least the depth of the tree.
int DepthLimitOf(std::string_view text) {
  int depth = 0;
  int max_depth = 0;
  int num_dots = 0;
  int max_dots = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = SkipString(text, i);
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '[' || c == '{') max_depth = std::max(max_depth, ++depth);
    if (c == ']' || c == '}') --depth;
    if (c == '.') max_dots = std::max(max_dots, ++num_dots);
    if (c == '\n') num_dots = 0;
    ++i;
  }
  return max_depth + max_dots;
}

template <typename Time>
std::string TimeText(const Time& time) {
  std::ostringstream text;
  text << time;
  return text.str();
}

struct Node {
  const toml::value* from;
  Json* to;
};

void ConvertTable(const toml::table& table, Json& object, std::vector<Node>& rest) {
  object = Json::object();
  std::vector<const toml::table::value_type*> entries;
  for (const auto& entry : table) entries.push_back(&entry);
  const auto key = [](const toml::table::value_type* entry) {
    const toml::source_location at = entry->second.location();
    return std::tuple(at.line(), at.column(), std::string_view(entry->first));
  };
  std::sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) { return key(a) < key(b); });
  for (const auto* entry : entries) object[entry->first] = nullptr;
  for (const auto* entry : entries) rest.push_back({&entry->second, &object[entry->first]});
}

void ConvertArray(const toml::array& array, Json& list, std::vector<Node>& rest) {
  list = Json(array.size(), nullptr);
  for (size_t i = 0; i < array.size(); ++i) rest.push_back({&array[i], &list[i]});
}

Json Convert(const toml::value& root) {
  Json json;
  std::vector<Node> rest = {{&root, &json}};
  while (!rest.empty()) {
    const auto [from, to] = rest.back();
    rest.pop_back();
    switch (from->type()) {
      case toml::value_t::table:
        ConvertTable(from->as_table(), *to, rest);
        break;
      case toml::value_t::array:
        ConvertArray(from->as_array(), *to, rest);
        break;
      case toml::value_t::boolean:
        *to = from->as_boolean();
        break;
      case toml::value_t::integer:
        *to = from->as_integer();
        break;
      case toml::value_t::floating:
        *to = from->as_floating();
        break;
      case toml::value_t::string:
        *to = from->as_string().str;
        break;
      case toml::value_t::offset_datetime:
        *to = TimeText(from->as_offset_datetime());
        break;
      case toml::value_t::local_datetime:
        *to = TimeText(from->as_local_datetime());
        break;
      case toml::value_t::local_date:
        *to = TimeText(from->as_local_date());
        break;
      case toml::value_t::local_time:
        *to = TimeText(from->as_local_time());
        break;
      case toml::value_t::empty:
        break;
    }
  }
  return json;
}

// Returns the reason and the line of a toml11 message, which quotes the source.
std::string ReasonOf(const std::exception& error) {
  std::string reason = error.what();
  if (const auto* known = dynamic_cast<const toml::exception*>(&error)) {
    reason = "line " + std::to_string(known->location().line()) + ": " + reason;
  }
  reason.resize(std::min(reason.find('\n'), reason.size()));
  const std::string_view prefix = "[error] ";
  if (const size_t at = reason.find(prefix); at != std::string::npos) reason.erase(at, prefix.size());
  return Escape(reason);
}

}  // namespace

Json ReadTomlTree(const std::string& text, const std::string& where) {
  if (!tokenizer::IsValidUtf8(text)) throw ConfigError(where + ": not valid UTF-8");
  if (DepthLimitOf(text) > kMaxDepth) {
    throw ConfigError(where + ": nested too deeply (limit " + std::to_string(kMaxDepth) + ")");
  }
  std::istringstream stream(text);
  try {
    return Convert(toml::parse(stream, "tools"));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw ConfigError(where + ": " + ReasonOf(error));
  }
}

}  // namespace vllm::app
