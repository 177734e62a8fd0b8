#include "app/chat/commands/slash_result.h"

#include <algorithm>
#include <charconv>

namespace vllm::app {

std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  size_t end = 0;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\n", end);
    if (begin == std::string::npos) return words;
    end = std::min(text.find_first_of(" \t\n", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

std::optional<int64_t> PositiveNumber(const std::string& text, int64_t fallback) {
  if (text.empty()) return fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

}  // namespace vllm::app
