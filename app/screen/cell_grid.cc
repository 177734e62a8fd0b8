#include "app/screen/cell_grid.h"

#include <algorithm>

#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

// Cuts a cluster with very many combining marks, so that a cell stays small.
std::string CutCluster(std::string cluster) {
  constexpr size_t kMaxBytes = 32;
  if (cluster.size() <= kMaxBytes) return cluster;
  size_t end = kMaxBytes;
  while (tokenizer::IsUtf8Continuation(cluster[end])) --end;
  return cluster.substr(0, end);
}

// Returns `untrusted` as one line that can be put into cells. A tab becomes a space.
std::string CellText(std::string_view untrusted) {
  std::string text(SafeLine(untrusted).view());
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
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
  const std::string text = CellText(untrusted.substr(0, max_bytes));
  for (size_t pos = 0; pos < text.size();) {
    const TextCluster cluster = ClusterAt(text, pos);
    if (column + cluster.columns > end) break;
    if (column >= 0) {
      for (int i = 0; i < cluster.columns; ++i) {
        ClearHalf(row, column + i);
        cells_[Index(row, column + i)] = {i == 0 ? CutCluster(text.substr(pos, cluster.num_bytes)) : "", style};
      }
    }
    column += cluster.columns;
    pos += cluster.num_bytes;
  }
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

int NumColumns(std::string_view untrusted) { return TextColumns(CellText(untrusted)); }

}  // namespace vllm::app
