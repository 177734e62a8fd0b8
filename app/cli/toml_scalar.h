// ParseTomlScalar: one string, integer, float or boolean of TOML, parsed by toml11. toml11 is quadratic in long arrays
// and recursive in nested values, so it receives one scalar at a time. A pure function.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

struct TomlScalar {
  std::string text;   // the contents of a string; numbers in decimal, booleans as true and false
  std::string error;  // not empty: `raw` is not a scalar, and this is the reason in one line
};

// `raw`: the scalar as the file spells it. REQUIRES: at most kMaxTomlScalarBytes bytes for a string and
// kMaxTomlWordBytes for other values, valid UTF-8, and no unquoted bracket, brace or line break.
TomlScalar ParseTomlScalar(std::string_view raw);

inline constexpr size_t kMaxTomlScalarBytes = size_t{64} << 10;
// Longer than every useful number. Binary integers of more than 63 digits would overflow inside toml11.
inline constexpr size_t kMaxTomlWordBytes = 64;

}  // namespace vllm
