// PackedMatrix: a weight [num_rows, num_columns] in the order the inner loop streams it: panels of 16 rows, within a
// panel column by column, or bfloat16 by pairs of columns. Element (n, k) of a panel is at k * 16 + n % 16, in bfloat16
// at k / 2 * 32 + n % 16 * 2 + k % 2; rows past num_rows and columns past num_columns are zero. Made once at load by
// the rank that uses it, then read by that rank's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/dtype.h"

namespace vllm {

inline constexpr int64_t kPanelRows = 16;

struct PackedMatrixView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  // Even in bfloat16. A panel is 16 times as many elements.
  [[gnu::always_inline]] int64_t stored_columns() const {
    return dtype == DType::kBFloat16 ? (num_columns + 1) / 2 * 2 : num_columns;
  }
  int64_t num_panels() const { return (num_rows + kPanelRows - 1) / kPanelRows; }
};

// num_columns values of a source, perhaps unaligned.
struct SourceRow {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
};

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // All zeros, or as `buffers` has it. Throws std::bad_alloc.
  PackedMatrix(int64_t num_rows, int64_t num_columns, DType dtype, const BufferSource& buffers = NewBuffers);

  int64_t num_rows() const { return view_.num_rows; }
  int64_t num_columns() const { return view_.num_columns; }
  const PackedMatrixView& view() const { return view_; }
  size_t size_bytes() const { return buffer_.size_bytes(); }
  // True: it came packed, and nothing may be packed into it.
  bool is_filled() const { return buffer_.is_filled(); }

  // Fills rows [16 * panel, + rows.size()). Values are rounded to this matrix' type; each row has a type of its own.
  // Different panels may be packed by different threads. REQUIRES: rows.size() is 16, or fewer at the last panel's end.
  void PackPanel(int64_t panel, std::span<const SourceRow> rows);
  // Fills all rows: row n, column 0 is at source + n * source_stride_bytes.
  void PackRows(const std::byte* source, DType source_dtype, int64_t source_stride_bytes);

  // One row back as float32, for embedding lookups; out has num_columns values.
  void UnpackRow(int64_t row, float* out) const;

 private:
  AlignedBuffer buffer_;
  PackedMatrixView view_;
};

// Source elements as float32, one by one; `source` may be unaligned.
void ConvertToFloat(const std::byte* source, DType source_dtype, int64_t count, float* out);

}  // namespace vllm
