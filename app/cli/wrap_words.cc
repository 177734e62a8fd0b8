#include "app/cli/wrap_words.h"

namespace vllm::app {

void AppendWrapped(std::string_view text, size_t indent, size_t column, size_t width, std::string& out) {
  size_t pos = 0;
  bool first = true;
  while (pos < text.size()) {
    size_t end = text.find(' ', pos);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view word = text.substr(pos, end - pos);
    if (!first && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
    pos = end + 1;
  }
  out += '\n';
}

void AppendEntry(std::string_view left, size_t indent, std::string_view text, size_t width, std::string& out) {
  constexpr size_t kMinTextColumns = 30;
  if (indent + kMinTextColumns > width) indent = 6;
  std::string line = "  " + std::string(left);
  if (line.size() + 2 > indent) {
    out += line + '\n';
    line.clear();
  }
  line.append(indent - line.size(), ' ');
  out += line;
  AppendWrapped(text, indent, indent, width, out);
}

}  // namespace vllm::app
