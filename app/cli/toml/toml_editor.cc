#include "app/cli/toml/toml_editor.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "app/cli/toml/toml_reader.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

const TomlEntry* FindTopEntry(const TomlDocument& document, std::string_view key) {
  for (const TomlEntry& entry : document.entries) {
    if (entry.table.empty() && entry.key == key) return &entry;
  }
  return nullptr;
}

// Returns the offset after the byte order mark, if there is one.
size_t TextBegin(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

// Returns the offset of the first byte of the line that contains `pos`.
size_t LineBegin(std::string_view text, size_t pos) {
  const size_t before = pos == 0 ? std::string_view::npos : text.rfind('\n', pos - 1);
  return before == std::string_view::npos ? TextBegin(text) : before + 1;
}

// Returns the offset after the line break of the line that contains `pos`, or the size of the text.
size_t LineEnd(std::string_view text, size_t pos) {
  const size_t line_feed = text.find('\n', pos);
  return line_feed == std::string_view::npos ? text.size() : line_feed + 1;
}

std::string_view LineBreakOf(std::string_view text) {
  const size_t line_feed = text.find('\n');
  const bool is_crlf = line_feed != std::string_view::npos && line_feed > 0 && text[line_feed - 1] == '\r';
  return is_crlf ? "\r\n" : "\n";
}

std::string Quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04X", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string WrittenKey(std::string_view key) {
  const bool is_bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return is_bare ? std::string(key) : Quoted(key);
}

bool IsCommentLine(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line[first] == '#';
}

// Returns the offset at which a line with a new top-level key can be inserted.
size_t InsertionPoint(std::string_view text, const TomlDocument& document) {
  size_t after = 0;
  for (const TomlEntry& entry : document.entries) {
    if (entry.value_end <= document.first_header) after = std::max(after, LineEnd(text, entry.value_end));
  }
  if (after > 0) return after;
  if (document.first_header == std::string::npos) return text.size();
  // Comments directly above a table describe the table.
  size_t begin = LineBegin(text, document.first_header);
  while (begin > TextBegin(text)) {
    const size_t previous = LineBegin(text, begin - 1);
    if (!IsCommentLine(text.substr(previous, begin - previous))) break;
    begin = previous;
  }
  return begin;
}

}  // namespace

std::string SetTomlString(const std::string& text, std::string_view key, std::string_view value,
                          const std::string& name) {
  if (!tokenizer::IsValidUtf8(value)) {
    throw ConfigError(Escape(name) + ": " + Escape(key) + ": not valid UTF-8 (" + Escape(value) + ")");
  }
  const TomlDocument document = ReadToml(text, name, kMcpTable);
  std::string edited = text;
  if (const TomlEntry* entry = FindTopEntry(document, key)) {
    return edited.replace(entry->value_begin, entry->value_end - entry->value_begin, Quoted(value));
  }
  const size_t begin = InsertionPoint(text, document);
  std::string line = WrittenKey(key) + " = " + Quoted(value);
  line += LineBreakOf(text);
  // The last line of the file may have no line break.
  if (begin > 0 && begin == text.size() && text[begin - 1] != '\n') line.insert(0, LineBreakOf(text));
  return edited.insert(begin, line);
}

std::string RemoveTomlKey(const std::string& text, std::string_view key, const std::string& name) {
  const TomlDocument document = ReadToml(text, name, kMcpTable);
  const TomlEntry* entry = FindTopEntry(document, key);
  if (entry == nullptr) return text;
  const size_t line_begin = LineBegin(text, entry->value_begin);
  const size_t comment = text.find_first_not_of(" \t", entry->value_end);
  const bool has_comment = comment != std::string::npos && text[comment] == '#';
  std::string edited = text;
  return edited.erase(line_begin, (has_comment ? comment : LineEnd(text, entry->value_end)) - line_begin);
}

}  // namespace vllm::app
