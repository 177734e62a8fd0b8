// CellGrid: the contents of a full-screen view, a rectangle of styled cells. A view draws into it, CursesScreen shows
// it, and tests read it as text. Filters all text as SafeText does, so a cell never holds a control character. A plain
// value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

// The 16-color palette, so the user's theme decides how a color looks.
enum class CellColor : uint8_t { kDefault, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

struct CellStyle {
  CellColor color = CellColor::kDefault;
  bool bold = false;
  bool dim = false;
  bool reverse = false;
  bool underline = false;
  friend bool operator==(const CellStyle&, const CellStyle&) = default;
};

struct Cell {
  std::string text = " ";  // one grapheme cluster; empty: the right half of the wide character before it
  CellStyle style;
};

class CellGrid {
 public:
  // Negative sizes count as 0.
  CellGrid(int rows, int columns);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  // REQUIRES: 0 <= row < rows(), 0 <= column < columns().
  const Cell& At(int row, int column) const { return cells_[Index(row, column)]; }

  // Writes `untrusted` as one line, with at most `max_columns` columns, and returns the column after it. Text outside
  // the grid is cut, and so is a wide character that does not fit. A tab counts as one space. Any position is allowed.
  int Put(int row, int column, std::string_view untrusted, CellStyle style = {}, int max_columns = 1 << 20);
  // Like Put, but ends at column + width.
  void PutRight(int row, int column, int width, std::string_view untrusted, CellStyle style = {});
  // Changes the style of cells that exist.
  void SetStyle(int row, int column, int width, CellStyle style);

  // Returns the rows without trailing spaces, each followed by a line break.
  std::string Text() const;

 private:
  size_t Index(int row, int column) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }
  // Replaces the other half of a wide character in this cell with a space.
  void ClearHalf(int row, int column);

  int rows_;
  int columns_;
  std::vector<Cell> cells_;
};

// Returns the number of columns of `untrusted` as CellGrid::Put writes it.
int NumColumns(std::string_view untrusted);

}  // namespace vllm::app
