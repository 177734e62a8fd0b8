// ParseTomlScalar parses one TOML string, integer, float or boolean with toml11. toml11 takes quadratic time for long
// arrays and recurses into nested values, so it receives one scalar at a time. A pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

struct TomlScalar {
  std::string text;   // contents of a string; numbers in decimal, booleans as true and false
  std::string error;  // one line that says why `raw` is rejected; empty on success
};

// Parses `raw`, a scalar as written in the file. REQUIRES: `raw` is valid UTF-8 without unquoted brackets, braces and
// line breaks; a string has at most kMaxTomlScalarBytes bytes and any other value at most kMaxTomlWordBytes.
TomlScalar ParseTomlScalar(std::string_view raw);

inline constexpr size_t kMaxTomlScalarBytes = size_t{64} << 10;
// Longer than any useful number. Binary integers of more than 63 digits would overflow inside toml11.
inline constexpr size_t kMaxTomlWordBytes = 64;

}  // namespace vllm::app
