// Parses one line of Markdown source: decides which blocks it can begin or end. The rules are those of CommonMark 0.30
// and of GitHub's tables, as far as they decide where a block ends. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vllm::app {

bool IsBlankLine(std::string_view line);
// Returns `line` without white space at its ends.
std::string_view Trimmed(std::string_view line);
// Returns the columns of white space at the beginning of `line`; a tab ends at a multiple of four.
int IndentColumns(std::string_view line);
// Returns `line` without white space of up to `columns` columns at its beginning.
std::string_view StripIndent(std::string_view line, int columns);

struct CodeFence {
  char character;  // '`' or '~'
  size_t length;
  int indent;
  std::string_view info;
};
// Returns the fence that the line is, at any indent.
std::optional<CodeFence> ParseFence(std::string_view line);
bool ClosesFence(std::string_view line, const CodeFence& fence);
// Returns true for text that begins like a fence.
bool MayBecomeFence(std::string_view line);

struct ListMarker {
  int content_column;  // where the item's text begins
  size_t text_begin;   // the same as an offset, after all white space
  bool is_ordered;
  bool is_empty;       // no text follows
  bool can_interrupt;  // a paragraph may end before this item
};
std::optional<ListMarker> ParseListMarker(std::string_view line);

// The rest of a line after its list markers, if it has any.
struct ItemText {
  std::string_view text;
  int column;
};
ItemText TextAfterMarkers(std::string_view line);

bool IsThematicBreak(std::string_view line);
bool IsSetextUnderline(std::string_view line);
bool IsAtxHeading(std::string_view line);
bool IsQuote(std::string_view line);
// Returns the number of cells of a row of a table, such as "| a | b |", whose outer bars may be missing.
size_t CountCells(std::string_view line);
// Returns the number of columns if the line is the second line of a table, such as "|---|:-:|", else 0.
size_t TableColumns(std::string_view line);

// If a block of mathematics begins in this line and does not end there, returns the text that ends it: "$$" or "\]".
// Otherwise returns an empty text.
std::string_view MathBlockEnd(std::string_view line);

}  // namespace vllm::app
