#include "engine/model_loader/quantization/checkpoint_matrix.h"

#include <algorithm>
#include <cstring>

namespace vllm {

namespace {

// Rows per task: a task must do enough work to amortize its scheduling.
constexpr int64_t kRowsPerCall = 32;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Returns the column order of a matrix with `stored` columns. Columns [offset, offset + count) belong to the part.
std::vector<int32_t> ShiftedOrder(int64_t stored, int64_t offset, int64_t count) {
  if (offset == 0 && count == stored) return {};
  std::vector<int32_t> order(static_cast<size_t>(stored), -1);
  for (int64_t k = 0; k < count; ++k) order[static_cast<size_t>(offset + k)] = static_cast<int32_t>(k);
  return order;
}

}  // namespace

CheckpointMatrix StoreBlocks(const TensorView& view, const MatrixPart& part, const kernels::BufferSource& buffers,
                             const ForEach& for_each) {
  const kernels::QuantFormat format = *kernels::BlockFormat(view.type);
  const int64_t block = kernels::BlockColumns(format);
  const int64_t offset = part.column_begin % block;
  const int64_t first = part.column_begin - offset;
  const int64_t stored = RoundUp(offset + part.num_columns, block);
  CheckpointMatrix result{kernels::CheckpointQuantMatrix(format, part.num_rows, stored, buffers),
                          ShiftedOrder(stored, offset, part.num_columns)};
  if (result.matrix.is_filled()) return result;
  const int64_t row_bytes = result.matrix.view().row_bytes;
  for_each((part.num_rows + kRowsPerCall - 1) / kRowsPerCall, [&](int64_t call) {
    const int64_t end = std::min(part.num_rows, (call + 1) * kRowsPerCall);
    for (int64_t i = call * kRowsPerCall; i < end; ++i) {
      std::memcpy(result.matrix.row(i), view.Row(part.row_begin + i) + BytesOf(view.type, first),
                  static_cast<size_t>(row_bytes));
    }
  });
  return result;
}

std::optional<BlocksView> ViewBlocks(const TensorView& view, const MatrixPart& part) {
  if (view.interleaved_head_dim > 0) return std::nullopt;
  const kernels::QuantFormat format = *kernels::BlockFormat(view.type);
  const int64_t block = kernels::BlockColumns(format);
  const int64_t offset = part.column_begin % block;
  const int64_t first = part.column_begin - offset;
  BlocksView result;
  result.matrix.format = format;
  result.matrix.num_rows = part.num_rows;
  result.matrix.num_columns = RoundUp(offset + part.num_columns, block);
  result.matrix.row_bytes = view.RowBytes();
  result.matrix.data = reinterpret_cast<const uint8_t*>(view.Row(part.row_begin) + BytesOf(view.type, first));
  result.column_order = ShiftedOrder(result.matrix.num_columns, offset, part.num_columns);
  return result;
}

}  // namespace vllm
