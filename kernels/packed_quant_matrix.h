// PackedQuantMatrix: a weight [num_rows, num_columns] of codes of 8 bits, with a scale for every 128 columns, or of 4
// bits, with a scale for every 32, in the order the inner loop of an integer dot product streams it: panels of 16 rows,
// within a panel blocks of 32 columns.
//   w[n, k] = (level(code[n, k]) - 128) * scale[n, k / scale_columns()]
// A block's eight-bit codes are their own levels, in 8 runs of 64 bytes: four neighbouring columns of row 0, of row 1,
// ... of row 15. Its four-bit codes are 4 such runs, two columns apart by 16 in a byte: run j has columns 4 j to 4 j +
// 3 in the low halves and 4 j + 16 to 4 j + 19 in the high ones. Rows past num_rows are zero, columns are filled up to
// a multiple of 32. Made once at load by the rank that uses it, then read by that rank's threads.
#pragma once

#include <cstdint>

#include "kernels/aligned_buffer.h"
#include "kernels/packed_matrix.h"
#include "kernels/quant_matrix.h"
#include "kernels/row_tiles.h"

namespace vllm {

struct PackedQuantView {
  const uint8_t* codes = nullptr;    // [num_panels, num_blocks, block_bytes()]
  const uint16_t* scales = nullptr;  // float16 [num_panels, num_scales(), 16]
  const uint8_t* levels = nullptr;   // [16]: a four-bit code's level; null for eight-bit codes
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  [[gnu::always_inline]] int64_t num_panels() const { return (num_rows + kPanelRows - 1) / kPanelRows; }
  [[gnu::always_inline]] int64_t num_blocks() const { return (num_columns + kBlockColumns - 1) / kBlockColumns; }
  [[gnu::always_inline]] int64_t block_bytes() const {
    return kPanelRows * (levels == nullptr ? kBlockColumns : kBlockColumns / 2);
  }
  [[gnu::always_inline]] int64_t scale_columns() const { return levels == nullptr ? kScaleColumns : kBlockColumns; }
  [[gnu::always_inline]] int64_t num_scales() const { return (num_columns + scale_columns() - 1) / scale_columns(); }
};

class PackedQuantMatrix {
 public:
  enum class Bits : uint8_t { k8, k4 };

  PackedQuantMatrix() = default;
  // All weights zero, or as `buffers` has them: codes, then scales. Throws std::bad_alloc.
  PackedQuantMatrix(Bits bits, int64_t num_rows, int64_t num_columns, const BufferSource& buffers = NewBuffer);

  int64_t num_rows() const { return view_.num_rows; }
  const PackedQuantView& view() const { return view_; }
  size_t size_bytes() const { return codes_.size_bytes() + scales_.size_bytes(); }
  // True: it came packed, and no row may be set.
  bool is_filled() const { return codes_.is_filled(); }

  // Rounds a row's num_columns values to codes: of 8 bits, the largest magnitude of 128 becoming 127; of 4 bits, to
  // IQ4_NL blocks by `kernels`. Different rows may be set by different threads.
  void QuantizeRow(const QuantKernels& kernels, int64_t row, const float* values);
  // One row back as float32; out has num_columns values.
  void UnpackRow(int64_t row, float* out) const;

 private:
  uint8_t* Codes(int64_t row, int64_t block) {
    return codes_.as<uint8_t>() + (row / kPanelRows * view_.num_blocks() + block) * view_.block_bytes() +
           4 * (row % kPanelRows);
  }
  uint16_t& Scale(int64_t row, int64_t scale) const {
    return scales_.as<uint16_t>()[(row / kPanelRows * view_.num_scales() + scale) * kPanelRows + row % kPanelRows];
  }
  void QuantizeRow8(int64_t row, const float* values);
  void QuantizeRow4(const QuantKernels& kernels, int64_t row, const float* values);

  AlignedBuffer codes_, scales_;
  PackedQuantView view_;
};

}  // namespace vllm
