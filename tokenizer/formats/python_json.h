// Python's json module writes NaN, Infinity and -Infinity, which are no JSON. This makes such text readable by a JSON
// parser. A pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

// `json` with NaN and Infinity, where they stand as values, replaced by these numbers; "-" before Infinity is kept.
// Nothing changes inside strings. Text that is not JSON stays so.
std::string ReplacePythonNumbers(std::string_view json, std::string_view nan, std::string_view infinity);

// For a parser that makes doubles: NaN becomes a number outside every range, Infinity the largest double.
std::string ReplacePythonNumbers(std::string_view json);

}  // namespace vllm
