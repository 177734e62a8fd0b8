// PackedMatrix: a weight [num_rows, num_columns], stored as panels of 16 rows in the order in which the inner loop
// streams them. A panel is stored column by column, and in bfloat16 by pairs of columns. In its panel, element
// (n, k) has the index
//   k * 16 + n % 16, or in bfloat16 k / 2 * 32 + n % 16 * 2 + k % 2.
// Rows past num_rows and columns past num_columns are zero. The rank that uses the matrix packs it once at load time;
// then that rank's threads read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/dtype.h"

namespace vllm::kernels {

inline constexpr int64_t kPanelRows = 16;

struct PackedMatrixView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  // num_columns, rounded up to an even number in bfloat16. A panel has 16 times as many elements.
  [[gnu::always_inline]] int64_t stored_columns() const {
    return dtype == DType::kBFloat16 ? (num_columns + 1) / 2 * 2 : num_columns;
  }
  int64_t num_panels() const { return (num_rows + kPanelRows - 1) / kPanelRows; }
  // Returns the view of rows [begin, begin + count). REQUIRES: begin is a multiple of 16.
  PackedMatrixView Rows(int64_t begin, int64_t count) const {
    const int64_t bytes = begin * stored_columns() * static_cast<int64_t>(SizeOf(dtype));
    return {static_cast<const std::byte*>(data) + bytes, dtype, count, num_columns};
  }
};

// The num_columns values of one source row. `data` may be unaligned.
struct SourceRow {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
};

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // All weights are zero, unless `buffers` provides the contents. Throws std::bad_alloc.
  PackedMatrix(int64_t num_rows, int64_t num_columns, DType dtype, const BufferSource& buffers = NewBuffers);

  int64_t num_rows() const { return view_.num_rows; }
  int64_t num_columns() const { return view_.num_columns; }
  const PackedMatrixView& view() const { return view_; }
  size_t size_bytes() const { return buffer_.size_bytes(); }
  // Returns true if `buffers` provided the contents. Then nothing may be packed into the matrix.
  bool is_filled() const { return buffer_.is_filled(); }

  // Fills rows [16 * panel, 16 * panel + rows.size()) and rounds values to this matrix's type. Rows may have
  // different source types. Different threads may pack different panels. REQUIRES: rows.size() is 16 or, for the last
  // panel, the number of remaining rows.
  void PackPanel(int64_t panel, std::span<const SourceRow> rows);
  // Fills all rows. Column 0 of row n is at source + n * source_stride_bytes.
  void PackRows(const std::byte* source, DType source_dtype, int64_t source_stride_bytes);

  // Converts one row to float32, for embedding lookups. out: [num_columns].
  void UnpackRow(int64_t row, float* out) const;

 private:
  AlignedBuffer buffer_;
  PackedMatrixView view_;
};

// Converts `count` source elements to float32. `source` may be unaligned.
void ConvertToFloat(const std::byte* source, DType source_dtype, int64_t count, float* out);

}  // namespace vllm::kernels
