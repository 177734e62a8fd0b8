#include "engine/model_loader/stored_matrix.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/quant_codes.h"

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

// The largest magnitudes of a matrix' scales, as far as float16 is concerned.
class ScaleRange {
 public:
  // Of one row. Any thread.
  void Add(const std::vector<float>& values) {
    bool exact = true;
    float largest = 0.0f;
    for (const float value : values) {
      exact = exact && Float16ToFloat(FloatToFloat16(value)) == value;
      largest = std::max(largest, std::abs(value));
    }
    if (exact) return;
    float seen = largest_.load(std::memory_order_relaxed);
    while (!(seen >= largest) && !largest_.compare_exchange_weak(seen, largest, std::memory_order_relaxed)) {
    }
    rounded_.store(true, std::memory_order_relaxed);
  }
  // Rounding moves no scale by more than 2^-11 of itself or 2^-13 of the largest.
  bool Fits() const {
    return !rounded_.load(std::memory_order_relaxed) || (largest_.load(std::memory_order_relaxed) < kLargestFloat16 &&
                                                         largest_.load(std::memory_order_relaxed) >= kLeastLargest);
  }

 private:
  static constexpr float kLargestFloat16 = 65504.0f;
  static constexpr float kLeastLargest = 0x1p-12f;

  std::atomic<float> largest_ = 0.0f;
  std::atomic<bool> rounded_ = false;
};

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

std::optional<PackedQuantMatrix> PackCodes(const QuantMatrixView& w, const ForEach& for_each) {
  const std::optional<PackedQuantForm> form = PackedFormOf(w);
  if (!form) return std::nullopt;
  PackedQuantMatrix packed(*form, w.num_rows, w.num_columns);
  ScaleRange range;
  // A panel at a time, so that threads do not share its lines.
  for_each(packed.view().num_panels(), [&](int64_t panel) {
    const auto num_scales = static_cast<size_t>(packed.view().num_scales());
    std::vector<uint8_t> codes(static_cast<size_t>(w.num_columns));
    std::vector<float> scales(num_scales), minimums(num_scales);
    const int64_t end = std::min(w.num_rows, (panel + 1) * kPanelRows);
    for (int64_t row = panel * kPanelRows; row < end; ++row) {
      ReadCodes(w, *form, row, codes.data(), scales.data(), minimums.data());
      range.Add(scales);
      range.Add(minimums);
      packed.SetRow(row, codes.data(), scales.data(), minimums.data());
    }
  });
  if (!range.Fits()) return std::nullopt;
  return packed;
}

}  // namespace vllm
