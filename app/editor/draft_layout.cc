#include "app/editor/draft_layout.h"

#include <algorithm>

#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

constexpr int kTabColumns = 8;

// The size of a cluster on the terminal.
struct ShownCluster {
  size_t num_bytes;  // in the draft
  int columns;
  int max_columns;  // see MaxClusterColumns
};

// Returns the cluster at `position`, whose row has `column` columns before it, and appends the text that shows it to
// `out` if that is not null. REQUIRES: the character there is not a line feed.
ShownCluster Show(std::string_view text, size_t position, int column, int row_columns, SafeText* out) {
  const char c = text[position];
  const bool ends_before_ascii = position + 1 >= text.size() || static_cast<unsigned char>(text[position + 1]) < 0x80;
  if (c >= ' ' && c < 0x7F && ends_before_ascii) {
    if (out != nullptr) *out += SafeText(text.substr(position, 1));
    return {1, 1, 1};
  }
  if (c == '\t') {
    const int columns = std::max(1, std::min(kTabColumns - column % kTabColumns, row_columns - column));
    if (out != nullptr) *out += SafeText(std::string(static_cast<size_t>(columns), ' '));
    return {1, columns, columns};
  }
  TextCluster cluster = ClusterAt(text, position);
  // A carriage return is shown in hex, and the line feed after it ends the row.
  if (c == '\r') cluster = {1, 0, true};
  const std::string_view raw = text.substr(position, cluster.num_bytes);
  const SafeText safe(raw);
  if (safe.view() == raw) {
    if (out != nullptr) *out += safe;
    return {cluster.num_bytes, cluster.columns, cluster.is_single ? cluster.columns : MaxClusterColumns(raw)};
  }
  const std::string_view fitting = FitColumns(safe.view(), row_columns);
  if (out != nullptr) *out += SafeText(fitting);
  const int columns = TextColumns(fitting);
  return {cluster.num_bytes, columns, columns};
}

struct RowSpan {
  size_t begin;  // byte offsets in the draft
  size_t end;
  std::string_view prompt;  // before the text
};

// A prompt may take at most half of a row.
std::string_view FittingPrompt(std::string_view prompt, int row_columns) { return FitColumns(prompt, row_columns / 2); }

int RowColumns(int num_columns) { return std::max(2, num_columns - 1); }

std::vector<RowSpan> BreakRows(const Draft& draft, int row_columns) {
  std::vector<RowSpan> rows;
  std::string_view prompt = draft.prompt;
  size_t begin = 0;
  // A long prompt, such as that of a search for a long text, is cut at its beginning: its end is the more useful part.
  int column = TextColumns(prompt);
  while (column > row_columns / 2) {
    const TextCluster first = ClusterAt(prompt, 0);
    prompt.remove_prefix(first.num_bytes);
    column -= first.columns;
  }
  int max_column = column;
  for (size_t i = 0; i < draft.text.size();) {
    if (draft.text[i] == '\n') {
      rows.push_back({begin, i, prompt});
      begin = ++i;
      prompt = FittingPrompt(draft.continuation, row_columns);
      column = max_column = TextColumns(prompt);
      continue;
    }
    ShownCluster shown = Show(draft.text, i, column, row_columns, nullptr);
    if (max_column + shown.max_columns > row_columns && i > begin) {
      rows.push_back({begin, i, prompt});
      begin = i;
      prompt = "";
      column = max_column = 0;
      shown = Show(draft.text, i, column, row_columns, nullptr);
    }
    column += shown.columns;
    max_column += shown.max_columns;
    i += shown.num_bytes;
  }
  rows.push_back({begin, draft.text.size(), prompt});
  return rows;
}

size_t RowOf(const std::vector<RowSpan>& rows, size_t cursor) {
  const auto after = std::upper_bound(rows.begin(), rows.end(), cursor,
                                      [](size_t offset, const RowSpan& row) { return offset < row.begin; });
  return static_cast<size_t>(after - rows.begin()) - 1;
}

// Returns the text of a row, up to `end` if the row is longer. Adds the columns to `columns`.
SafeText RowText(const Draft& draft, const RowSpan& row, size_t end, int row_columns, int& columns) {
  SafeText text(row.prompt);
  columns = TextColumns(row.prompt);
  for (size_t i = row.begin; i < std::min(end, row.end);) {
    SafeText cluster;
    const ShownCluster shown = Show(draft.text, i, columns, row_columns, &cluster);
    if (i + shown.num_bytes > end) break;
    text += cluster;
    columns += shown.columns;
    i += shown.num_bytes;
  }
  return text;
}

}  // namespace

DraftLayout LayOutDraft(const Draft& draft, int num_columns, int max_rows, size_t first_row) {
  const int row_columns = RowColumns(num_columns);
  const std::vector<RowSpan> rows = BreakRows(draft, row_columns);
  const size_t cursor_row = RowOf(rows, draft.cursor);
  const size_t num_visible = std::min(rows.size(), static_cast<size_t>(max_rows));
  DraftLayout layout;
  layout.num_rows = rows.size();
  layout.first_row = std::min(first_row, rows.size() - num_visible);
  layout.first_row = std::min(layout.first_row, cursor_row);
  if (cursor_row >= layout.first_row + num_visible) layout.first_row = cursor_row + 1 - num_visible;
  int columns = 0;
  for (size_t i = layout.first_row; i < layout.first_row + num_visible; ++i) {
    layout.rows.push_back({RowText(draft, rows[i], rows[i].end, row_columns, columns)});
  }
  layout.cursor_row = static_cast<int>(cursor_row - layout.first_row);
  layout.before_cursor = RowText(draft, rows[cursor_row], draft.cursor, row_columns, layout.cursor_column);
  return layout;
}

std::optional<size_t> MoveByRow(const Draft& draft, int num_columns, int direction, int goal_column) {
  const int row_columns = RowColumns(num_columns);
  const std::vector<RowSpan> rows = BreakRows(draft, row_columns);
  const size_t cursor_row = RowOf(rows, draft.cursor);
  if (direction < 0 ? cursor_row == 0 : cursor_row + 1 == rows.size()) return std::nullopt;
  const size_t target = direction < 0 ? cursor_row - 1 : cursor_row + 1;
  const RowSpan& row = rows[target];
  // The end of a row that is continued in the next one is the beginning of that one.
  const bool is_continued = target + 1 < rows.size() && rows[target + 1].begin == row.end;
  int column = TextColumns(row.prompt);
  size_t position = row.begin;
  while (position < row.end) {
    const ShownCluster shown = Show(draft.text, position, column, row_columns, nullptr);
    if (column + shown.columns > goal_column) break;
    if (is_continued && position + shown.num_bytes >= row.end) break;
    column += shown.columns;
    position += shown.num_bytes;
  }
  return position;
}

}  // namespace vllm::app
