// ReadToml: the part of TOML 1.0 that a configuration needs, in one pass, without recursion and in memory proportional
// to the text. Keys stand at the top or in one level of tables; values are strings, integers, floats, booleans and
// arrays of these. Dates, inline tables, arrays of tables, arrays in arrays and deeper tables are refused. The reader
// finds where each scalar begins and ends; toml11 parses it (toml_scalar.h). A pure function.
//
//   entry  := key "=" value            key := part | part "." part        at the top; one part below a [table]
//   table  := "[" part "]"             part := bare | "basic string" | 'literal string'
// Example: `seed = 1` and `[batch]` with `stop = ["a", "b"]` are the entries {"", "seed", ["1"]} and
// {"batch", "stop", ["a", "b"]}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

struct TomlPlace {
  int64_t line = 1;    // from 1
  int64_t column = 1;  // in characters, from 1

  // "3:14"
  std::string Text() const { return std::to_string(line) + ":" + std::to_string(column); }
};

struct TomlEntry {
  std::string table;  // empty: at the top
  std::string key;
  std::vector<std::string> values;  // numbers in decimal, booleans as true and false
  bool is_array = false;
  TomlPlace place;  // of the key
};

struct TomlTable {
  std::string name;
  TomlPlace place;  // of its first mention
};

struct TomlDocument {
  std::vector<TomlEntry> entries;  // in the order of the text
  std::vector<TomlTable> tables;   // each once
};

// Throws ConfigError `<name>:<line>:<column>: <why>`.
TomlDocument ReadToml(std::string_view text, const std::string& name);

}  // namespace vllm
