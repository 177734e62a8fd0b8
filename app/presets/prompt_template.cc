#include "app/presets/prompt_template.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"

namespace vllm::app {

PromptTemplate::PromptTemplate(std::string_view text, const std::string& where) {
  std::string literal;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal.push_back(c);
      i += 2;
    } else if (c == '{') {
      const size_t close = text.find('}', i);
      if (close == std::string_view::npos) throw ConfigError(where + ": unclosed brace; write {{ for a literal brace");
      parts_.push_back({std::exchange(literal, {}), IndexOf(text.substr(i + 1, close - i - 1))});
      i = close + 1;
    } else if (c == '}') {
      throw ConfigError(where + ": unmatched closing brace; write }} for a literal brace");
    } else {
      literal.push_back(c);
      ++i;
    }
  }
  if (!literal.empty()) parts_.push_back({std::move(literal), kNone});
}

size_t PromptTemplate::IndexOf(std::string_view name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<size_t>(known - names_.begin());
  names_.emplace_back(name);
  return names_.size() - 1;
}

bool PromptTemplate::Uses(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::string PromptTemplate::Fill(std::span<const std::string_view> values) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.text;
    if (part.name_index != kNone) out += values[part.name_index];
  }
  return out;
}

}  // namespace vllm::app
