#include "engine/model_loader/quantization/checkpoint_matrix.h"

#include <algorithm>
#include <cstring>

namespace vllm {

namespace {

// Rows per task: a task must do enough work to amortize its scheduling.
constexpr int64_t kRowsPerCall = 32;

}  // namespace

CheckpointMatrix StoreBlocks(const TensorView& view, const MatrixRows& rows, const kernels::BufferSource& buffers,
                             const ForEach& for_each) {
  CheckpointMatrix result;
  result.matrix =
      kernels::CheckpointQuantMatrix(*kernels::BlockFormat(view.type), rows.num_rows, rows.in_features, buffers);
  if (result.matrix.is_filled()) return result;
  const int64_t row_bytes = result.matrix.view().row_bytes;
  for_each((rows.num_rows + kRowsPerCall - 1) / kRowsPerCall, [&](int64_t call) {
    const int64_t end = std::min(rows.num_rows, (call + 1) * kRowsPerCall);
    for (int64_t i = call * kRowsPerCall; i < end; ++i) {
      std::memcpy(result.matrix.row(i), view.Row(rows.row_begin + i), static_cast<size_t>(row_bytes));
    }
  });
  return result;
}

std::optional<kernels::CheckpointQuantMatrixView> ViewBlocks(const TensorView& view, const MatrixRows& rows) {
  if (view.interleaved_head_dim > 0) return std::nullopt;
  kernels::CheckpointQuantMatrixView matrix;
  matrix.format = *kernels::BlockFormat(view.type);
  matrix.num_rows = rows.num_rows;
  matrix.num_columns = rows.in_features;
  matrix.row_bytes = view.RowBytes();
  matrix.data = reinterpret_cast<const uint8_t*>(view.Row(rows.row_begin));
  return matrix;
}

}  // namespace vllm
