// The result of a slash command of a chat, and functions that parse its arguments. Plain values and pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vllm::app {

struct SlashResult {
  bool quits = false;
  std::optional<std::string> draft;  // text for the input line, from /edit
};

// Splits at spaces, tabs and line breaks.
std::vector<std::string> SplitWords(const std::string& text);

// Returns `text` as a positive number, or `fallback` if it is empty, or nullopt if it is neither.
std::optional<int64_t> PositiveNumber(const std::string& text, int64_t fallback);

}  // namespace vllm::app
