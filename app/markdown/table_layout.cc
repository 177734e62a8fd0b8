#include "app/markdown/table_layout.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace vllm::app {
namespace {

constexpr int kSeparatorColumns = 3;  // " │ "
// A column that is narrower than its text has at least this many columns, or the table becomes a list.
constexpr int kMinColumns = 10;

struct CellLine {
  size_t begin;
  size_t end;
};

std::vector<CellLine> WrapCell(const InlineText& cell, int columns) {
  std::vector<CellLine> lines;
  cell.Wrap(columns, [&lines](size_t begin, size_t end) { lines.push_back({begin, end}); });
  return lines;
}

void AddSpaces(Row& row, int count) {
  if (count > 0) row.Add(SafeText(std::string(static_cast<size_t>(count), ' ')), TextStyle());
}

void AppendGridRow(const TableRow& cells, const std::vector<CellAlignment>& alignments, const ColumnWidths& widths,
                   const TextStyle& rule_style, std::vector<Row>& rows) {
  std::vector<std::vector<CellLine>> lines;
  size_t height = 1;
  for (size_t i = 0; i < widths.size(); ++i) {
    lines.push_back(WrapCell(cells.cells[i], widths[i]));
    height = std::max(height, lines.back().size());
  }
  for (size_t y = 0; y < height; ++y) {
    Row row;
    size_t num_shown = widths.size();
    // No blanks at the end of a row.
    while (num_shown > 1 &&
           (y >= lines[num_shown - 1].size() || lines[num_shown - 1][y].begin == lines[num_shown - 1][y].end)) {
      --num_shown;
    }
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) row.Add(SafeText(i + 1 == widths.size() && num_shown <= i ? " │" : " │ "), rule_style);
      int used = 0;
      int before = 0;
      if (y < lines[i].size()) {
        const CellLine line = lines[i][y];
        used = MaxTextColumns(cells.cells[i].view().substr(line.begin, line.end - line.begin));
        const int space = std::max(0, widths[i] - used);
        before = alignments[i] == CellAlignment::kRight    ? space
                 : alignments[i] == CellAlignment::kCenter ? space / 2
                                                           : 0;
        if (used > 0) AddSpaces(row, before);
        if (used == 0) before = 0;
        cells.cells[i].AppendTo(row, line.begin, line.end);
      }
      if (i + 1 < widths.size()) AddSpaces(row, widths[i] - used - before);
    }
    if (y > 0) row.source = Row::kNoSource;
    rows.push_back(std::move(row));
  }
}

void AppendRule(const ColumnWidths& widths, const TextStyle& rule_style, std::vector<Row>& rows) {
  std::string text;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) text += "─┼─";
    for (int x = 0; x < widths[i]; ++x) text += "─";
  }
  Row row;
  row.Add(SafeText(text), rule_style);
  rows.push_back(std::move(row));
}

void AppendListRow(const Table& table, const TableRow& cells, int columns, const TextStyle& name_style,
                   std::vector<Row>& rows) {
  for (size_t i = 0; i < cells.cells.size(); ++i) {
    const InlineText& cell = cells.cells[i];
    if (cell.empty()) continue;
    InlineText line;
    const size_t name_size = table.header.cells[i].size();
    // The name first, with its line breaks as spaces.
    std::string name(table.header.cells[i].view());
    std::replace(name.begin(), name.end(), '\n', ' ');
    int name_columns = MaxTextColumns(name);
    if (name_size > 0) name += ": ";
    name_columns += name_size > 0 ? 2 : 0;
    const bool name_fits = name_columns <= columns / 2;
    Row first;
    if (name_fits) {
      first.Add(SafeText(name), name_style);
    } else {
      line.AddGenerated(name, 0, name_style);
      line.Wrap(columns, [&](size_t begin, size_t end) {
        Row row;
        line.AppendTo(row, begin, end);
        row.source = Row::kNoSource;
        rows.push_back(std::move(row));
      });
      name_columns = 0;
    }
    bool is_first = true;
    cell.Wrap(columns - (name_fits ? name_columns : 2), [&](size_t begin, size_t end) {
      Row row;
      if (is_first && name_fits)
        row = std::move(first);
      else
        AddSpaces(row, name_fits ? name_columns : 2);
      cell.AppendTo(row, begin, end);
      if (!is_first || i > 0 || !name_fits) row.source = Row::kNoSource;
      is_first = false;
      rows.push_back(std::move(row));
    });
  }
}

}  // namespace

ColumnWidths ChooseColumnWidths(const Table& table, int columns) {
  const size_t num_columns = table.header.cells.size();
  ColumnWidths widths(num_columns, 1);
  const auto widen = [&widths, num_columns](const TableRow& row) {
    for (size_t i = 0; i < num_columns; ++i) widths[i] = std::max(widths[i], row.cells[i].MaxLineColumns());
  };
  widen(table.header);
  for (const TableRow& row : table.rows) widen(row);
  const int available = columns - kSeparatorColumns * (static_cast<int>(num_columns) - 1);
  if (std::accumulate(widths.begin(), widths.end(), int64_t{0}) <= available) return widths;
  // Narrow columns keep their width. The others share what is left in equal parts.
  std::vector<size_t> order(num_columns);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return widths[a] < widths[b]; });
  int left = available;
  for (size_t i = 0; i < num_columns; ++i) {
    const int share = left / static_cast<int>(num_columns - i);
    int& width = widths[order[i]];
    if (width > share && share < kMinColumns) return {};
    width = std::min(width, share);
    left -= width;
  }
  return widths;
}

std::vector<Row> LayOutTable(const Table& table, const ColumnWidths& widths, int columns, bool has_header,
                             bool has_styles) {
  std::vector<Row> rows;
  if (widths.empty()) {
    if (has_header && table.rows.empty()) {
      for (const InlineText& name : table.header.cells) {
        name.Wrap(columns, [&](size_t begin, size_t end) {
          Row row;
          name.AppendTo(row, begin, end);
          rows.push_back(std::move(row));
        });
      }
    }
    bool needs_gap = false;
    for (const TableRow& row : table.rows) {
      if (needs_gap) rows.emplace_back();
      needs_gap = true;
      AppendListRow(table, row, columns, {.bold = has_styles}, rows);
    }
    return rows;
  }
  const TextStyle rule_style = has_styles ? kDimStyle : TextStyle();
  if (has_header) {
    AppendGridRow(table.header, table.alignments, widths, rule_style, rows);
    AppendRule(widths, rule_style, rows);
  }
  for (const TableRow& row : table.rows) AppendGridRow(row, table.alignments, widths, rule_style, rows);
  return rows;
}

}  // namespace vllm::app
