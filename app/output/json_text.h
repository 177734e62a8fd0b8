// Parses untrusted JSON with a limit on nesting, and writes JSON on one line. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vllm::app {

// Parses `text` into `json`. Returns an empty string, or why the text is invalid: a syntax error with line and column,
// a number that overflows, or more than 128 levels of nesting. The error quotes nothing from the text except a number
// that overflows.
std::string ParseJsonText(std::string_view text, nlohmann::ordered_json& json);

// Returns `json` on one line. Invalid UTF-8 becomes U+FFFD.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace vllm::app
