// Lays out a draft, the text that the user is typing, as rows of a terminal. Pure functions; any thread.
//
// A row ends at a line feed or when the next cluster does not fit. The last column stays free, so that the cursor has a
// cell after a full row and the terminal never wraps a row. The first row begins with the prompt, and the first row of
// every other line with the continuation prompt. A tab extends to the next multiple of eight columns. Characters that
// could control the terminal are shown in hex, as by SafeText.
//
// Terminals disagree about the width of a cluster of several code points, such as an emoji of a family. Rows are broken
// as if such a cluster had MaxClusterColumns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/terminal/safe_text.h"

namespace vllm::app {

struct Draft {
  std::string_view text;
  size_t cursor = 0;  // byte offset in `text`
  std::string_view prompt;
  std::string_view continuation;
};

struct DraftRow {
  SafeText text;
  bool operator==(const DraftRow& other) const { return text.view() == other.text.view(); }
};

struct DraftLayout {
  std::vector<DraftRow> rows;  // the visible rows, at least one
  size_t first_row = 0;        // the number of rows above the visible ones
  size_t num_rows = 1;         // the number of all rows
  int cursor_row = 0;          // index in `rows`
  int cursor_column = 0;       // the sum of the columns of the clusters before the cursor
  SafeText before_cursor;      // the beginning of the cursor's row
};

// Returns the rows of `draft` on a terminal with `num_columns` columns. If there are more than `max_rows`, returns
// those around the cursor, beginning at `first_row` if possible. A cursor inside a cluster is shown at its beginning.
// O(text). REQUIRES: draft.cursor <= draft.text.size(), max_rows > 0.
DraftLayout LayOutDraft(const Draft& draft, int num_columns, int max_rows, size_t first_row = 0);

// Returns the offset at `goal_column` (in columns) or to the left of it in the row above (-1) or below (+1) the
// cursor's row, or nullopt if there is no such row. O(text).
std::optional<size_t> MoveByRow(const Draft& draft, int num_columns, int direction, int goal_column);

}  // namespace vllm::app
