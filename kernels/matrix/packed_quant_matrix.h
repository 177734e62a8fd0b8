// PackedQuantMatrix: a weight [num_rows, num_columns] of codes of 8, 6 or 4 bits with scales, and in some forms
// minimums, for groups of 16, 32 or 128 columns, in the order the inner loop of an integer dot product streams it:
// panels of 16 rows, within a panel blocks of 32 columns.
//   w[n, k] = (level(code[n, k]) - zero) * scale[n, k / scale_columns] + minimum[n, k / scale_columns]
// A code is its own level, but that four-bit codes may have a table of levels. A block's codes of a byte each are 8
// runs of 64 bytes: four neighbouring columns of row 0, of row 1, ... of row 15. Its four-bit codes are 4 such runs,
// two columns apart by 16 in a byte: run j has columns 4 j to 4 j + 3 in the low halves and 4 j + 16 to 4 j + 19 in the
// high ones. Rows past num_rows are zero, columns are filled up to a multiple of 32. Made once at load by the rank that
// uses it, then read by that rank's threads.
#pragma once

#include <cstdint>

#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

// Eight bits: zero is 128, scales are for 32 columns, or without minimums for 128. Six bits: scales are for 32 columns,
// or without minimums for 16. Four bits: scales are for 32 columns, and a table of levels has its zero at 128 and no
// minimums.
struct PackedQuantForm {
  int32_t bits = 8;  // of a code, at most; four are stored two in a byte, others in a byte each
  int64_t scale_columns = kScaleColumns;
  bool has_minimums = false;
  int32_t zero = 128;               // the level that stands for 0
  const uint8_t* levels = nullptr;  // [16], of static storage; null: none
};

// ggml's kvalues_iq4nl + 128.
inline constexpr uint8_t kIQ4_NLLevels[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
// What -q quantizes to.
inline constexpr PackedQuantForm kInt8Form = {};
inline constexpr PackedQuantForm kInt4Form = {4, kBlockColumns, false, 128, kIQ4_NLLevels};

struct PackedQuantView {
  const uint8_t* codes = nullptr;      // [num_panels, num_blocks, block_bytes()]
  const uint16_t* scales = nullptr;    // float16 [num_panels, num_scales(), 16]
  const uint16_t* minimums = nullptr;  // likewise, or null
  int32_t bits = 8;                    // these four as in the form
  int32_t zero = 128;
  const uint8_t* levels = nullptr;
  int64_t scale_columns = kScaleColumns;
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  [[gnu::always_inline]] int64_t num_panels() const { return (num_rows + kPanelRows - 1) / kPanelRows; }
  [[gnu::always_inline]] int64_t num_blocks() const { return (num_columns + kBlockColumns - 1) / kBlockColumns; }
  [[gnu::always_inline]] int64_t block_bytes() const {
    return kPanelRows * (bits == 4 ? kBlockColumns / 2 : kBlockColumns);
  }
  [[gnu::always_inline]] int64_t num_scales() const { return (num_columns + scale_columns - 1) / scale_columns; }
  CodeSums code_sums() const { return {scale_columns, zero, minimums != nullptr}; }
};

class PackedQuantMatrix {
 public:
  PackedQuantMatrix() = default;
  // All weights zero, or as `buffers` has them: codes, scales, minimums if any. Throws std::bad_alloc.
  PackedQuantMatrix(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns,
                    const BufferSource& buffers = NewBuffers);

  int64_t num_rows() const { return view_.num_rows; }
  const PackedQuantView& view() const { return view_; }
  size_t size_bytes() const { return codes_.size_bytes() + scales_.size_bytes() + minimums_.size_bytes(); }
  // True: it came packed, and no row may be set.
  bool is_filled() const { return codes_.is_filled(); }

  // The rest is for different rows on different threads.
  // A row's codes [num_columns], scales [num_scales()] and minimums [num_scales()], which are rounded to float16;
  // `minimums` is read in forms that have them.
  void SetRow(int64_t row, const uint8_t* codes, const float* scales, const float* minimums);
  // Rounds a row's num_columns values to codes: in kInt8Form the largest magnitude of 128 becomes 127; in kInt4Form to
  // IQ4_NL blocks by `kernels`. REQUIRES: one of these two.
  void QuantizeRow(const QuantKernels& kernels, int64_t row, const float* values);
  // One row back as float32; out has num_columns values.
  void UnpackRow(int64_t row, float* out) const;

 private:
  int64_t ScaleAt(int64_t row, int64_t scale) const {
    return (row / kPanelRows * view_.num_scales() + scale) * kPanelRows + row % kPanelRows;
  }
  uint8_t* Codes(int64_t row, int64_t block) {
    return codes_.as<uint8_t>() + (row / kPanelRows * view_.num_blocks() + block) * view_.block_bytes() +
           4 * (row % kPanelRows);
  }
  uint16_t& Scale(int64_t row, int64_t scale) { return scales_.as<uint16_t>()[ScaleAt(row, scale)]; }
  void QuantizeRow8(int64_t row, const float* values);
  void QuantizeRow4(const QuantKernels& kernels, int64_t row, const float* values);

  AlignedBuffer codes_, scales_, minimums_;
  PackedQuantView view_;
};

}  // namespace vllm
