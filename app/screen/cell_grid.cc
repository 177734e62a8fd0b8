#include "app/screen/cell_grid.h"

#include <utf8proc.h>

#include <algorithm>

#include "app/terminal/safe_text.h"

namespace vllm::app {
namespace {

// More combining marks than this on one character are left out, so that a cell stays small.
constexpr int kMaxMarks = 4;

// Calls `put(cluster, width)` for each grapheme cluster of `untrusted` until `put` returns false.
template <typename Put>
void ForEachCluster(std::string_view untrusted, Put&& put) {
  const SafeText safe = SafeLine(untrusted);
  const std::string_view text = safe.view();
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  std::string cluster;
  int width = 0;
  int num_marks = 0;
  utf8proc_int32_t previous = 0;
  utf8proc_int32_t state = 0;
  for (utf8proc_ssize_t pos = 0; pos < size;) {
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + pos, size - pos, &code_point);
    if (length <= 0) break;
    if (!cluster.empty() && utf8proc_grapheme_break_stateful(previous, code_point, &state)) {
      if (width > 0 && !put(cluster, width)) return;
      cluster.clear();
      width = 0;
      num_marks = 0;
    }
    const int columns = code_point == '\t' ? 1 : utf8proc_charwidth(code_point);
    if (cluster.empty() || num_marks < kMaxMarks) {
      cluster.append(code_point == '\t' ? " " : text.substr(static_cast<size_t>(pos), static_cast<size_t>(length)));
      num_marks += cluster.empty() ? 0 : 1;
    }
    width = std::min(2, std::max(width, columns));
    previous = code_point;
    pos += length;
  }
  if (width > 0) put(cluster, width);
}

}  // namespace

CellGrid::CellGrid(int rows, int columns) : rows_(std::max(rows, 0)), columns_(std::max(columns, 0)) {
  cells_.resize(static_cast<size_t>(rows_) * static_cast<size_t>(columns_));
}

void CellGrid::ClearHalf(int row, int column) {
  if (At(row, column).text.empty() && column > 0) cells_[Index(row, column - 1)].text = " ";
  if (column + 1 < columns_ && At(row, column + 1).text.empty()) cells_[Index(row, column + 1)].text = " ";
}

int CellGrid::Put(int row, int column, std::string_view untrusted, CellStyle style, int max_columns) {
  if (row < 0 || row >= rows_) return column;
  const int end = std::min<int64_t>(columns_, static_cast<int64_t>(column) + std::max(max_columns, 0));
  // A column needs at most a few bytes; do not filter megabytes to show a line.
  const size_t max_bytes = static_cast<size_t>(columns_) * 64 + 256;
  ForEachCluster(untrusted.substr(0, max_bytes), [&](const std::string& cluster, int width) {
    if (column + width > end) return false;
    if (column >= 0) {
      for (int i = 0; i < width; ++i) {
        ClearHalf(row, column + i);
        cells_[Index(row, column + i)] = {i == 0 ? cluster : std::string(), style};
      }
    }
    column += width;
    return true;
  });
  return column;
}

void CellGrid::PutRight(int row, int column, int width, std::string_view untrusted, CellStyle style) {
  const int used = NumColumns(untrusted);
  Put(row, column + std::max(0, width - used), untrusted, style, std::min(width, used));
}

void CellGrid::SetStyle(int row, int column, int width, CellStyle style) {
  if (row < 0 || row >= rows_) return;
  for (int i = std::max(column, 0); i < std::min<int64_t>(columns_, static_cast<int64_t>(column) + width); ++i) {
    cells_[Index(row, i)].style = style;
  }
}

std::string CellGrid::Text() const {
  std::string text;
  for (int row = 0; row < rows_; ++row) {
    std::string line;
    for (int column = 0; column < columns_; ++column) line += At(row, column).text;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

int NumColumns(std::string_view untrusted) {
  int columns = 0;
  ForEachCluster(untrusted, [&](const std::string&, int width) {
    columns += width;
    return true;
  });
  return columns;
}

}  // namespace vllm::app
