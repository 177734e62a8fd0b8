#include "engine/model_loader/stored_matrix.h"

#include <cstring>

namespace vllm {

namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Of `count` columns that begin at `offset` of `stored`.
std::vector<int32_t> ShiftedOrder(int64_t stored, int64_t offset, int64_t count) {
  if (offset == 0 && count == stored) return {};
  std::vector<int32_t> order(static_cast<size_t>(stored), -1);
  for (int64_t k = 0; k < count; ++k) order[static_cast<size_t>(offset + k)] = static_cast<int32_t>(k);
  return order;
}

}  // namespace

StoredMatrix StoreBlocks(const TensorView& view, const MatrixPart& part) {
  const QuantFormat format = *BlockFormat(view.type);
  const int64_t block = BlockColumns(format);
  const int64_t offset = part.column_begin % block;
  const int64_t first = part.column_begin - offset;
  const int64_t stored = RoundUp(offset + part.num_columns, block);
  StoredMatrix result{QuantMatrix(format, part.num_rows, stored), ShiftedOrder(stored, offset, part.num_columns)};
  const int64_t row_bytes = result.matrix.view().row_bytes;
  for (int64_t i = 0; i < part.num_rows; ++i) {
    std::memcpy(result.matrix.row(i), view.Row(part.row_begin + i) + BytesOf(view.type, first),
                static_cast<size_t>(row_bytes));
  }
  return result;
}

}  // namespace vllm
