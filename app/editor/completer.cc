#include "app/editor/completer.h"

#include <algorithm>

#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

// Appends blanks up to `columns`, at least one.
void PadTo(int columns, std::string& line) {
  const int missing = columns - TextColumns(line);
  line.append(static_cast<size_t>(std::max(1, missing)), ' ');
}

std::string Fitted(const std::string& line, int num_columns) {
  std::string fitted(FitColumns(line, std::max(1, num_columns - 1)));
  fitted.erase(fitted.find_last_not_of(' ') + 1);
  return fitted;
}

}  // namespace

std::vector<std::string> CompletionLines(const std::vector<CompletionChoice>& choices, int num_columns,
                                         size_t max_lines) {
  constexpr int kMaxNameColumns = 40;
  std::vector<std::string> names;
  int widest = 0;
  bool has_descriptions = false;
  for (const CompletionChoice& choice : choices) {
    names.emplace_back(SafeLine(choice.text).view());
    widest = std::max(widest, std::min(kMaxNameColumns, TextColumns(names.back())));
    has_descriptions = has_descriptions || !choice.description.empty();
  }
  const int column = widest + 2;
  const size_t per_line = has_descriptions ? 1 : static_cast<size_t>(std::max(1, (num_columns - 1) / column));
  const size_t num_lines = (choices.size() + per_line - 1) / per_line;
  const size_t num_shown = num_lines <= max_lines ? num_lines : max_lines - 1;
  std::vector<std::string> lines;
  for (size_t row = 0; row < num_shown; ++row) {
    std::string line;
    for (size_t i = row * per_line; i < std::min(names.size(), (row + 1) * per_line); ++i) {
      if (i > row * per_line) PadTo(static_cast<int>(i - row * per_line) * column, line);
      line += names[i];
      if (choices[i].description.empty()) continue;
      PadTo(column, line);
      line += SafeLine(choices[i].description).view();
    }
    lines.push_back(Fitted(line, num_columns));
  }
  if (num_shown < num_lines) {
    const size_t num_left = choices.size() - std::min(choices.size(), num_shown * per_line);
    lines.push_back(Fitted("[" + std::to_string(num_left) + " more]", num_columns));
  }
  return lines;
}

}  // namespace vllm::app
