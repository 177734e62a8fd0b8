// ReadToml parses the subset of TOML 1.0 that a configuration needs, in one pass, without recursion and in memory
// proportional to the text. Keys are at the top or in one level of tables. Values are strings, integers, floats,
// booleans and arrays of these. Dates, inline tables, arrays of tables, nested arrays and nested tables are rejected.
// The reader finds where each scalar begins and ends; toml11 parses it (toml_scalar.h). A pure function; any thread.
//
//   table := "[" part "]"
//   entry := key "=" value             the entries below a [table] belong to it
//   key   := part | part "." part      two parts, a table and a key, are allowed only at the top
//   part  := bare | "basic string" | 'literal string'
// If the caller allows tables in one table, such as [mcp.NAME], an entry below them may also be an inline table of
// scalars: env = {LANG = "C"}.
// Example: `seed = 1` and `[batch]` with `stop = ["a", "b"]` are the entries {"", "seed", ["1"]} and
// {"batch", "stop", ["a", "b"]}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

struct TomlPosition {
  int64_t line = 1;    // from 1
  int64_t column = 1;  // in characters, from 1

  // "3:14"
  std::string Text() const { return std::to_string(line) + ":" + std::to_string(column); }
};

struct TomlEntry {
  std::string table;     // empty: at the top
  std::string subtable;  // of [table.subtable]
  std::string key;
  // Numbers in decimal, booleans as true and false. Of an inline table: each key, followed by its value.
  std::vector<std::string> values;
  bool is_array = false;
  bool is_inline_table = false;
  TomlPosition position;   // where the key is
  size_t value_begin = 0;  // the value as written in the text, without a comment after it, in bytes
  size_t value_end = 0;
};

struct TomlTable {
  std::string name;
  std::string subtable;   // of [name.subtable]
  TomlPosition position;  // where it is first mentioned
};

struct TomlDocument {
  std::vector<TomlEntry> entries;  // in file order
  std::vector<TomlTable> tables;   // without duplicates
  // Offset of the first [table] in the text, in bytes; npos: there is none.
  size_t first_header = std::string::npos;
};

// The table of the configuration file that has tables in it.
inline constexpr std::string_view kMcpTable = "mcp";

// Tables in the table `nested` are allowed; "": in none. Throws ConfigError: `<name>: not valid UTF-8` or
// `<name>:<line>:<column>: <why>`.
TomlDocument ReadToml(std::string_view text, const std::string& name, std::string_view nested = "");

}  // namespace vllm::app
