// RenderBlock: renders the Markdown source of one block with md4c: a paragraph, a heading, a block quote, a table, or
// an item of a list with everything inside it. A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/markdown/code_lexer.h"
#include "app/markdown/row.h"
#include "app/markdown/table_layout.h"

namespace vllm::app {

struct RenderOptions {
  int columns = 79;  // the width of rows that wrap; less than screen_columns, so that no row fills the screen
  int screen_columns = 80;
  bool has_styles = true;  // false: bold text, headings and code keep their markers instead
  bool has_links = false;  // the terminal shows hyperlinks
};

struct BlockPosition {
  size_t start = 0;        // the source before this offset has been rendered before and is left out
  int indent = 0;          // columns before the rows of text
  int64_t first_link = 0;  // the number of the first link
  // If not null, the widths of the columns of a table whose first rows have been rendered before.
  const ColumnWidths* table_widths = nullptr;
};

struct RenderedBlock {
  std::vector<Row> rows;
  ColumnWidths table_widths;  // of the last table
  bool has_table = false;
};

// The result does not depend on text outside `source`. Rows of code are not indented, so that a copy is exact. Time and
// memory: md4c needs time linear in the size for normal text; callers pass at most kMaxBlockBytes.
RenderedBlock RenderBlock(std::string_view source, const BlockPosition& position, const RenderOptions& options);

inline constexpr size_t kMaxBlockBytes = 8 << 10;

// Returns the rows of a line of code, which is one row, without the line feed: highlighted or, if the line is long,
// plain.
Row RenderCodeLine(std::string_view line, const CodeLanguage* language, CodeState& state, const RenderOptions& options);
inline constexpr size_t kMaxHighlightedLineBytes = 1000;

// Returns the rows of text that is not interpreted, wrapped to the width.
std::vector<Row> RenderPlainText(std::string_view text, size_t start, const RenderOptions& options);

// Returns `source` with backslashes added where md4c would hide text: before the brackets of \(math\) and \[math\] and
// the punctuation between them, and before link reference definitions. Adds dashes to the second line of tables.
// `added` receives the offsets of the added characters in the result, in ascending order.
std::string EscapeForMarkdown(std::string_view source, std::vector<size_t>& added);

}  // namespace vllm::app
