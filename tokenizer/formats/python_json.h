// Python's json module writes NaN, Infinity and -Infinity, which are not valid JSON. These functions make such text
// acceptable to a JSON parser. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::tokenizer {

// Returns `json` with the values NaN and Infinity replaced by `nan` and `infinity`. A "-" before Infinity is kept.
// Strings are not changed. JSON that is invalid for other reasons stays invalid.
std::string ReplacePythonNumbers(std::string_view json, std::string_view nan, std::string_view infinity);

// For parsers that read doubles: replaces NaN with the lowest double, so that range checks reject the value, and
// Infinity with the largest double.
std::string ReplacePythonNumbers(std::string_view json);

}  // namespace vllm::tokenizer
