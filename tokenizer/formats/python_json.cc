#include "tokenizer/formats/python_json.h"

namespace vllm::tokenizer {
namespace {

constexpr std::string_view kNan = "NaN";
constexpr std::string_view kInfinity = "Infinity";

bool IsDelimiter(char c) { return std::string_view(" \t\r\n,:[]{}").find(c) != std::string_view::npos; }

// Returns true if the `length` bytes at `begin` are a whole word.
bool IsWord(std::string_view json, size_t begin, size_t length, bool may_have_sign) {
  if (begin + length < json.size() && !IsDelimiter(json[begin + length])) return false;
  if (begin > 0 && may_have_sign && json[begin - 1] == '-') --begin;
  return begin == 0 || IsDelimiter(json[begin - 1]);
}

}  // namespace

std::string ReplacePythonNumbers(std::string_view json, std::string_view nan, std::string_view infinity) {
  if (json.find(kNan) == std::string_view::npos && json.find(kInfinity) == std::string_view::npos) {
    return std::string(json);
  }
  std::string out;
  out.reserve(json.size());
  bool is_in_string = false;
  for (size_t i = 0; i < json.size();) {
    const std::string_view rest = json.substr(i);
    if (is_in_string && json[i] == '\\' && rest.size() > 1) {
      out.append(rest.substr(0, 2));
      i += 2;
      continue;
    }
    if (json[i] == '"') is_in_string = !is_in_string;
    if (!is_in_string && rest.starts_with(kNan) && IsWord(json, i, kNan.size(), false)) {
      out.append(nan);
      i += kNan.size();
    } else if (!is_in_string && rest.starts_with(kInfinity) && IsWord(json, i, kInfinity.size(), true)) {
      out.append(infinity);
      i += kInfinity.size();
    } else {
      out += json[i++];
    }
  }
  return out;
}

std::string ReplacePythonNumbers(std::string_view json) {
  return ReplacePythonNumbers(json, "-1.7976931348623157e308", "1.7976931348623157e308");
}

}  // namespace vllm::tokenizer
