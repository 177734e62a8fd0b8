#include "app/output/list_text.h"

#include <array>
#include <ctime>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {

std::string LocalTimeText(int64_t ms) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  std::tm local{};
  std::array<char, 32> text{};
  if (localtime_r(&seconds, &local) == nullptr) return "";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local)};
}

std::string FirstLine(std::string_view text, size_t max_characters) {
  const std::string_view line = text.substr(0, text.find('\n'));
  size_t end = 0;
  for (size_t count = 0; end < line.size() && count < max_characters; ++count) {
    ++end;
    while (end < line.size() && tokenizer::IsUtf8Continuation(line[end])) ++end;
  }
  return std::string(line.substr(0, end)) + (end < text.size() ? "…" : "");
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace vllm::app
