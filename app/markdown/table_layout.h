// Lays out a table for a screen of a given width: aligned columns whose cells wrap or, if the columns would become too
// narrow, one list of "name: value" lines per row. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "app/markdown/inline_text.h"
#include "app/markdown/row.h"

namespace vllm::app {

enum class CellAlignment : uint8_t { kLeft, kCenter, kRight };

struct TableRow {
  std::vector<InlineText> cells;
};

struct Table {
  TableRow header;
  std::vector<CellAlignment> alignments;  // [num_columns]
  std::vector<TableRow> rows;
};

// The widths of the columns; empty: the rows are lists.
using ColumnWidths = std::vector<int>;

// Returns widths that fit in `columns` screen columns.
ColumnWidths ChooseColumnWidths(const Table& table, int columns);

// Returns the screen rows of the header, if `has_header`, and of the other rows. In a list, the names come from the
// header. If `has_styles`, the lines between cells are dim and the names in a list are bold.
std::vector<Row> LayOutTable(const Table& table, const ColumnWidths& widths, int columns, bool has_header,
                             bool has_styles);

}  // namespace vllm::app
