#include "app/screen/cell_grid.h"

#include <algorithm>

#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

// A cluster with more combining marks than fit into this many bytes is cut, so that a cell stays small.
constexpr size_t kMaxClusterBytes = 32;

// Calls `put(cluster, columns)` for each grapheme cluster of `untrusted` until `put` returns false.
template <typename Put>
void ForEachCluster(std::string_view untrusted, Put&& put) {
  const SafeText safe = SafeLine(untrusted);
  const std::string_view text = safe.view();
  for (size_t pos = 0; pos < text.size();) {
    const TextCluster cluster = ClusterAt(text, pos);
    std::string_view bytes = text.substr(pos, cluster.num_bytes);
    pos += cluster.num_bytes;
    if (bytes == "\t") {
      if (!put(" ", 1)) return;
      continue;
    }
    if (cluster.columns == 0) continue;
    if (bytes.size() > kMaxClusterBytes) {
      size_t end = kMaxClusterBytes;
      while (end > 0 && (static_cast<unsigned char>(bytes[end]) & 0xC0) == 0x80) --end;
      bytes = bytes.substr(0, end);
    }
    if (!put(bytes, cluster.columns)) return;
  }
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
  ForEachCluster(untrusted.substr(0, max_bytes), [&](std::string_view cluster, int width) {
    if (column + width > end) return false;
    if (column >= 0) {
      for (int i = 0; i < width; ++i) {
        ClearHalf(row, column + i);
        cells_[Index(row, column + i)] = {i == 0 ? std::string(cluster) : std::string(), style};
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
  ForEachCluster(untrusted, [&](std::string_view, int width) {
    columns += width;
    return true;
  });
  return columns;
}

}  // namespace vllm::app
