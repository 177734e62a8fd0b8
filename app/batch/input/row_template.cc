#include "app/batch/input/row_template.h"

#include <algorithm>
#include <utility>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"

namespace vllm::app {

RowTemplate::RowTemplate(std::string_view text, const std::vector<std::string>& columns) {
  std::string literal;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal.push_back(c);
      i += 2;
    } else if (c == '{') {
      const size_t close = text.find('}', i);
      if (close == std::string_view::npos)
        throw ConfigError("--template: unclosed brace; write {{ for a literal brace");
      const std::string name(text.substr(i + 1, close - i - 1));
      const auto column = std::find(columns.begin(), columns.end(), name);
      if (column == columns.end()) {
        const std::string near = NearestName(name, columns);
        throw ConfigError("--template: unknown column (" + name + ")" +
                          (near.empty() ? "" : "; did you mean " + near + "?"));
      }
      parts_.push_back({std::exchange(literal, {}), static_cast<int>(column - columns.begin())});
      i = close + 1;
    } else if (c == '}') {
      throw ConfigError("--template: unmatched closing brace; write }} for a literal brace");
    } else {
      literal.push_back(c);
      ++i;
    }
  }
  if (!literal.empty()) parts_.push_back({std::move(literal), -1});
}

std::string RowTemplate::Fill(const std::vector<std::string>& fields) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.text;
    if (part.column >= 0) out += fields[static_cast<size_t>(part.column)];
  }
  return out;
}

}  // namespace vllm::app
