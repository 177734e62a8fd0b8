// Renders text that is not Markdown: lines of code, and text that is only wrapped. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "app/markdown/code_lexer.h"
#include "app/markdown/row.h"

namespace vllm::app {

struct RenderOptions {
  int columns = 79;  // the width of rows that wrap; less than screen_columns, so that no row fills the screen
  int screen_columns = 80;
  bool has_styles = true;  // false: bold text, headings and code keep their markers instead
  bool has_links = false;  // the terminal shows hyperlinks

  TextStyle DimStyle() const { return has_styles ? kDimStyle : TextStyle(); }
};

// Returns the row of a line of code without its line feed. Lines of more than kMaxHighlightedLineBytes are plain.
Row RenderCodeLine(std::string_view line, const CodeLanguage* language, CodeState& state, const RenderOptions& options);
inline constexpr size_t kMaxHighlightedLineBytes = 1000;

// Returns the row of the first or last line of fenced code, such as "```python".
Row RenderFence(std::string_view line, const RenderOptions& options);

// Returns the rows of text that is not interpreted, wrapped to the width.
std::vector<Row> RenderPlainText(std::string_view text, size_t start, const RenderOptions& options);

}  // namespace vllm::app
