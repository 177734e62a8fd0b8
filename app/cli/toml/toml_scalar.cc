#include "app/cli/toml/toml_scalar.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <toml.hpp>

namespace vllm::app {
namespace {

// Extracts the reason from a toml11 message. Its first line is `[error] toml::<function>: <reason>`, with both prefixes
// optional. The following lines quote the source and point at the error.
std::string ReasonOf(const std::string& message) {
  std::string_view reason = std::string_view(message).substr(0, message.find('\n'));
  for (const std::string_view prefix : {"[error] ", "toml::"}) {
    if (!reason.starts_with(prefix)) continue;
    reason.remove_prefix(prefix.size());
    if (prefix == "toml::" && reason.find(':') != reason.npos) reason.remove_prefix(reason.find(':') + 1);
  }
  while (reason.starts_with(' ')) reason.remove_prefix(1);
  if (reason.ends_with('.')) reason.remove_suffix(1);
  return reason.empty() ? "not a TOML value" : std::string(reason);
}

// Returns false if `number` is a limit of its type although the literal `raw` has another value: toml11 clamps integers
// that are out of range. REQUIRES: `raw` is a TOML integer.
bool IsExactly(std::string_view raw, std::int64_t number) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (number != Limits::max() && number != Limits::min()) return true;
  std::string digits;
  for (const char c : raw) {
    if (c != '_') digits.push_back(c);
  }
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0o") || digits.starts_with("0b")) {
    base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
    digits.erase(0, 2);
  } else if (digits.starts_with('+')) {
    digits.erase(0, 1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return error == std::errc() && end == digits.data() + digits.size() && value == number;
}

TomlScalar ScalarOf(const toml::value& value, std::string_view raw) {
  // toml11 clamps numbers that are out of range to the largest or smallest value.
  static const TomlScalar kOutOfRange = {"", "the number is out of range"};
  switch (value.type()) {
    case toml::value_t::boolean:
      return {value.as_boolean() ? "true" : "false", ""};
    case toml::value_t::integer: {
      const std::int64_t number = value.as_integer();
      if (!IsExactly(raw, number)) return kOutOfRange;
      return {std::to_string(number), ""};
    }
    case toml::value_t::floating: {
      const double number = value.as_floating();
      if (std::abs(number) == std::numeric_limits<double>::max()) return kOutOfRange;
      std::ostringstream text;
      text.precision(17);
      text << number;
      return {text.str(), ""};
    }
    case toml::value_t::string:
      return {value.as_string().str, ""};
    default:
      return {"", "dates and times are not supported"};
  }
}

}  // namespace

TomlScalar ParseTomlScalar(std::string_view raw) {
  std::istringstream document("value = " + std::string(raw) + "\n");
  try {
    return ScalarOf(toml::find(toml::parse(document, "value"), "value"), raw);
  } catch (const std::exception& error) {
    return {"", ReasonOf(error.what())};
  }
}

}  // namespace vllm::app
