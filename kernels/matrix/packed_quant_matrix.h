// PackedQuantMatrix: a weight [num_rows, num_columns] as codes of 8, 6, 5 or 4 bits. It is stored as panels of 16 rows,
// and each panel as blocks of 32 columns, in the order in which the inner loop of an integer dot product streams them.
// Groups of 16, 32 or 128 columns, or all columns, share a scale. In some forms they also share a minimum.
//   w[n, k] = (level(code[n, k]) - zero) * scale[n, k / scale_columns] + minimum[n, k / scale_columns]
//
// Scales and minimums are float16, or products of an integer of one byte and a float16 number that 256 columns share,
// the super scale or super minimum (ggml's d and dmin of a super-block).
//
// The level of a code is the code itself, unless the form has a table of levels for four-bit codes.
//
// Eight bits: a block is 8 runs of 64 bytes. A run holds four adjacent columns of row 0, then of row 1, up to row 15.
// Four bits: a block is 4 such runs, and each byte holds two columns that are 16 apart. The low nibbles of run j are
// columns 4 j to 4 j + 3, the high nibbles are columns 4 j + 16 to 4 j + 19.
// Five bits: a block is 4 runs with the lower four bits, then a run with the fifth bits. Bit j of byte i belongs to the
// low nibble of byte i of run j, bit j + 4 to the high nibble.
// Six bits: a block is 4 runs with the lower four bits, then two runs with the upper two. Bits 2 j and 2 j + 1 of byte
// i of the first belong to the low nibble of byte i of run j, those of the second to the high nibble.
//
// Rows past num_rows are zero. Columns are padded to a multiple of 32; the padding is multiplied by zero codes of x.
// The rank that uses the matrix fills it once at load time; then that rank's threads read it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm::kernels {

// The valid forms are:
//   8 bits: zero is 128; a scale per 32 columns, or without minimums per 128 columns or per row (kRowColumns)
//   6 bits: a super scale and a scale per 16 columns, no minimums
//   5 bits: a scale per 32 columns
//   4 bits: a scale per 32 columns, or per 128 columns without a table of levels; with a table, zero is 128 and there
//     are no minimums
// Super scales are also possible with a table of levels, and with minimums and 4 or 5 bits.
struct PackedQuantForm {
  int32_t bits = 8;  // per code
  int64_t scale_columns = kScaleColumns;
  bool has_minimums = false;
  int32_t zero = 128;               // zero point, subtracted from each level
  const uint8_t* levels = nullptr;  // [16], static storage; null: no table
  bool has_super_scales = false;    // also super minimums if has_minimums
};

inline constexpr int64_t kSuperColumns = 256;

// One row of a weight. If the form has super scales, scales and minimums are integers in [-128, 127], and each is
// multiplied by the super scale or super minimum of its columns. Arrays that the form does not have are not read.
struct QuantRow {
  const uint8_t* codes = nullptr;         // [num_columns]
  const float* scales = nullptr;          // [num_scales()]
  const float* minimums = nullptr;        // [num_scales()]
  const float* super_scales = nullptr;    // [num_supers()]
  const float* super_minimums = nullptr;  // [num_supers()]
};

// ggml's kvalues_iq4nl + 128.
inline constexpr uint8_t kIQ4_NLLevels[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
// The forms that --quantization produces.
inline constexpr PackedQuantForm kInt8Form = {};
inline constexpr PackedQuantForm kInt4Form = {4, kBlockColumns, false, 128, kIQ4_NLLevels};
// For checkpoints that round each row of x with one scale. REQUIRES: at most kRowColumns columns.
inline constexpr PackedQuantForm kInt8RowForm = {8, kRowColumns};

struct PackedQuantView {
  const uint8_t* codes = nullptr;      // [num_panels, num_blocks, block_bytes()]
  const uint16_t* scales = nullptr;    // float16 [num_panels, num_scales(), 16]
  const uint16_t* minimums = nullptr;  // same shape, or null
  // In forms with super scales, instead of these two: [num_panels, num_supers(), super_bytes()]. Each of these blocks
  // has super scales [16] and super minimums [16] in float16, then int8 scales [256 / scale_columns, 16] and minimums,
  // but no minimums unless has_minimums.
  const uint8_t* supers = nullptr;
  bool has_minimums = false;
  int32_t bits = 8;  // this and the next three: see PackedQuantForm
  int32_t zero = 128;
  const uint8_t* levels = nullptr;
  int64_t scale_columns = kScaleColumns;
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  [[gnu::always_inline]] int64_t num_panels() const { return (num_rows + kPanelRows - 1) / kPanelRows; }
  [[gnu::always_inline]] int64_t num_blocks() const { return (num_columns + kBlockColumns - 1) / kBlockColumns; }
  [[gnu::always_inline]] int64_t block_bytes() const { return kPanelRows * kBlockColumns / 8 * bits; }
  [[gnu::always_inline]] int64_t num_scales() const { return (num_columns + scale_columns - 1) / scale_columns; }
  [[gnu::always_inline]] int64_t num_supers() const { return (num_columns + kSuperColumns - 1) / kSuperColumns; }
  [[gnu::always_inline]] int64_t super_bytes() const {
    return (2 + kSuperColumns / scale_columns) * kPanelRows * (has_minimums ? 2 : 1);
  }
  CodeSums code_sums() const { return {scale_columns, zero, has_minimums}; }
  // Returns the view of rows [begin, begin + count). REQUIRES: begin is a multiple of 16.
  PackedQuantView Rows(int64_t begin, int64_t count) const {
    PackedQuantView rows = *this;
    rows.num_rows = count;
    rows.codes += begin / kPanelRows * num_blocks() * block_bytes();
    if (scales != nullptr) rows.scales += begin * num_scales();
    if (minimums != nullptr) rows.minimums += begin * num_scales();
    if (supers != nullptr) rows.supers += begin / kPanelRows * num_supers() * super_bytes();
    return rows;
  }
};

class PackedQuantMatrix {
 public:
  PackedQuantMatrix() = default;
  // Returns the sizes in bytes of the buffers that the constructor requests: codes, then scales and, if the form has
  // them, minimums, or the blocks with super scales.
  static std::vector<size_t> BufferSizes(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns);
  // All weights are zero, unless `buffers` provides the contents. Requests the buffers of BufferSizes, in this order.
  // Throws std::bad_alloc.
  PackedQuantMatrix(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns,
                    const BufferSource& buffers = NewBuffers);

  int64_t num_rows() const { return view_.num_rows; }
  const PackedQuantView& view() const { return view_; }
  size_t size_bytes() const {
    return codes_.size_bytes() + scales_.size_bytes() + minimums_.size_bytes() + supers_.size_bytes();
  }
  // Returns true if `buffers` provided the contents. Then no row may be set.
  bool is_filled() const { return codes_.is_filled(); }

  // Sets a row. Float values are rounded to float16. Different threads may set different rows.
  void SetRow(int64_t row, const QuantRow& values);
  // Quantizes a row of num_columns values. In kInt8Form, the scale of 128 columns is their largest magnitude / 127. In
  // kInt4Form, `kernels` quantizes to IQ4_NL blocks. Different threads may set different rows. REQUIRES: the form is
  // one of these two.
  void QuantizeRow(const QuantKernels& kernels, int64_t row, const float* values);
  // Dequantizes one row to float32. out: [num_columns].
  void UnpackRow(int64_t row, float* out) const;

 private:
  int64_t ScaleIndex(int64_t row, int64_t scale) const {
    return (row / kPanelRows * view_.num_scales() + scale) * kPanelRows + row % kPanelRows;
  }
  uint8_t* Codes(int64_t row, int64_t block) {
    return codes_.as<uint8_t>() + (row / kPanelRows * view_.num_blocks() + block) * view_.block_bytes() +
           4 * (row % kPanelRows);
  }
  uint16_t& Scale(int64_t row, int64_t scale) { return scales_.as<uint16_t>()[ScaleIndex(row, scale)]; }
  uint8_t* Super(int64_t row, int64_t super) {
    return supers_.as<uint8_t>() + (row / kPanelRows * view_.num_supers() + super) * view_.super_bytes();
  }
  void SetScales(int64_t row, const QuantRow& values);
  // Returns the scale and the minimum of a column, or 0 if there are no minimums.
  std::pair<float, float> ScaleAndMinimum(int64_t row, int64_t column) const;
  // Sets the lower four bits, then the others, of codes of less than eight bits. codes: [kBlockColumns]
  void SetBlock(int64_t row, int64_t block, const uint8_t* codes);
  uint8_t CodeAt(int64_t row, int64_t column) const;
  void QuantizeRow8(int64_t row, const float* values);
  void QuantizeRow4(const QuantKernels& kernels, int64_t row, const float* values);

  AlignedBuffer codes_, scales_, minimums_, supers_;
  PackedQuantView view_;
};

}  // namespace vllm::kernels
