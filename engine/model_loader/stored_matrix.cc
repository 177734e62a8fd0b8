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

StoredMatrix QuantizeRows(const QuantKernels& kernels, int64_t bits, const MatrixPart& part,
                          const std::function<void(int64_t i, float* out)>& row, const ForEach& for_each) {
  const int64_t stored = RoundUp(part.num_columns, kQuantColumns);
  const QuantFormat format = bits == 8 ? QuantFormat::kQ8_0 : QuantFormat::kIQ4_NL;
  StoredMatrix result{QuantMatrix(format, part.num_rows, stored), ShiftedOrder(stored, 0, part.num_columns)};
  // Rows in runs, so that each call's buffer serves many.
  constexpr int64_t kRowsPerCall = 16;
  for_each((part.num_rows + kRowsPerCall - 1) / kRowsPerCall, [&](int64_t call) {
    std::vector<float> values(static_cast<size_t>(stored), 0.0f);
    const int64_t end = std::min(part.num_rows, (call + 1) * kRowsPerCall);
    for (int64_t i = call * kRowsPerCall; i < end; ++i) {
      row(i, values.data());
      kernels.quantize(format, values.data(), stored, result.matrix.row(i));
    }
  });
  return result;
}

}  // namespace vllm
