// CheckpointQuantMatrix: a weight [num_rows, num_columns] in the checkpoint's quantized format, which is either
// unchanged GGML blocks, or codes of 4 or 8 bits with scales for groups of columns. The rank that uses the matrix fills
// it once at load time; then that rank's threads read it.
//
// Blocks: row n consists of num_columns / BlockColumns(format) blocks that start at data + n * row_bytes.
// Groups: the codes of row n start at data + n * row_bytes. Every 16 columns form a chunk, which belongs to one group.
//   w[n, k] = (code[n, k] - zero[n, g]) * scale[n, g], g = group_of_chunk[k / 16]
//   kGroupFloat8: w[n, k] = e4m3(code[n, k]) * scale[n, g]
//   kGroupTable4: w[n, k] = table[code[n, k]] * scale[n, g]
// If there is a table of scales, the stored scales are bytes, and scale[n, g] is the table's entry.
//   4-bit codes: byte k / 32 * 16 + k % 16, low nibble if k % 32 < 16, else high nibble.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/dtype.h"
#include "kernels/matrix/weight_type.h"

namespace vllm::kernels {

inline constexpr int64_t kQuantColumns = 32;  // num_columns is a multiple of this
inline constexpr int64_t kGroupChunk = 16;

enum class QuantFormat : uint8_t {
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kTQ1_0,
  kTQ2_0,
  kNVFP4,
  kGroupUInt4,
  kGroupUInt8,
  kGroupFloat8,  // e4m3fn; no zero points
  kGroupTable4,  // 4-bit indexes of a table of values; no zero points
};

// Returns the format of a GGML block type, or nothing for scalar types.
std::optional<QuantFormat> BlockFormat(WeightType type);
// Returns the number of columns per block: 32, 64 or 256.
int64_t BlockColumns(QuantFormat format);
// Returns the size in bytes of a row of codes or blocks. REQUIRES: num_columns is a multiple of BlockColumns(format).
int64_t QuantRowBytes(QuantFormat format, int64_t num_columns);

struct CheckpointQuantMatrixView {
  QuantFormat format = QuantFormat::kQ8_0;
  const uint8_t* data = nullptr;
  int64_t row_bytes = 0;
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  // Groups only.
  int64_t num_groups = 0;
  DType scale_type = DType::kFloat32;
  const void* scales = nullptr;             // [num_rows, num_groups]: scale_type, or bytes if scale_table is not null
  const float* scale_table = nullptr;       // [256]
  const float* table = nullptr;             // [16]; only in kGroupTable4
  const int16_t* zeros = nullptr;           // [num_rows, num_groups]; null: see float_zeros
  const float* float_zeros = nullptr;       // [num_rows, num_groups]; null: zero_point for all groups
  int32_t zero_point = 0;                   // used if there are no zeros
  const int32_t* group_of_chunk = nullptr;  // [num_columns / 16]
  // The checkpoint says that x is rounded to int8 with one scale per row of x.
  bool has_scale_per_input_row = false;

  int64_t scale_bytes() const { return scale_table != nullptr ? 1 : static_cast<int64_t>(SizeOf(scale_type)); }
};

class CheckpointQuantMatrix {
 public:
  CheckpointQuantMatrix() = default;
  // A matrix of GGML blocks. All bytes are zero, unless `buffers` provides the contents. REQUIRES: num_columns is a
  // multiple of BlockColumns(format). Throws std::bad_alloc.
  CheckpointQuantMatrix(QuantFormat format, int64_t num_rows, int64_t num_columns,
                        const BufferSource& buffers = NewBuffers);
  // The groups of a matrix. group_of_chunk has one entry per 16 columns, each in [0, num_groups).
  struct Groups {
    std::vector<int32_t> group_of_chunk;
    int64_t num_groups = 0;
    DType scale_type = DType::kFloat32;
    bool has_zeros = false;
    int32_t zero_point = 0;
    bool has_float_zeros = false;         // zero points need not be integers; not together with has_zeros
    std::vector<float> table = {};        // [16] in kGroupTable4, else empty
    std::vector<float> scale_table = {};  // [256]; empty: scales are of scale_type
    bool has_scale_per_input_row = false;
  };
  // A matrix in a group format. Requests buffers for the codes, the scales and the zero points, if there are any, in
  // this order. Throws std::bad_alloc.
  CheckpointQuantMatrix(QuantFormat format, int64_t num_rows, int64_t num_columns, Groups groups,
                        const BufferSource& buffers = NewBuffers);

  const CheckpointQuantMatrixView& view() const { return view_; }
  int64_t num_rows() const { return view_.num_rows; }
  size_t size_bytes() const { return data_.size_bytes() + scales_.size_bytes() + zeros_.size_bytes(); }

  // Returns true if `buffers` provided the contents. Then the matrix must not be changed.
  bool is_filled() const { return data_.is_filled(); }

  // The addresses to which the loader writes a row, a scale and a zero point.
  uint8_t* row(int64_t n) { return data_.as<uint8_t>() + n * view_.row_bytes; }
  std::byte* scale(int64_t n, int64_t group) {
    return scales_.as<std::byte>() + (n * view_.num_groups + group) * view_.scale_bytes();
  }
  int16_t* zero(int64_t n, int64_t group) { return zeros_.as<int16_t>() + n * view_.num_groups + group; }
  float* float_zero(int64_t n, int64_t group) { return zeros_.as<float>() + n * view_.num_groups + group; }
  // Writes the codes of one row of a group format. codes: [num_columns].
  void SetCodes(int64_t n, const uint8_t* codes);

 private:
  void InitializeView(QuantFormat format, int64_t num_rows, int64_t num_columns);

  AlignedBuffer data_, scales_, zeros_;
  std::vector<int32_t> group_of_chunk_;
  std::vector<float> table_, scale_table_;
  CheckpointQuantMatrixView view_;
};

// The kernels that read and write checkpoint formats, one table per instruction set. They give the same guarantees as
// Kernels.
struct QuantKernels {
  // y[r, n] = bias[n] + sum over k of x[r, k] * w[n, k] for rows [row_begin, row_end) of w. x: [num_rows,
  // w.num_columns] with x_stride; y: [num_rows, w.num_rows] with y_stride; bias may be null.
  void (*linear)(const float* x, int64_t x_stride, int64_t num_rows, const CheckpointQuantMatrixView& w,
                 const float* bias, float* y, int64_t y_stride, int64_t row_begin, int64_t row_end);
  // Dequantizes columns [column_begin, column_end) of row n to float32, exactly as the formats define. REQUIRES:
  // column_begin and column_end are multiples of BlockColumns(w.format).
  void (*dequantize)(const CheckpointQuantMatrixView& w, int64_t n, int64_t column_begin, int64_t column_end,
                     float* out);
  // Quantizes `count` floats to IQ4_NL blocks. Tries several scales per block and keeps the one with the smallest
  // squared error. If a block contains NaN or infinity, its contents are unspecified. REQUIRES: count is a multiple of
  // 32.
  void (*quantize_iq4_nl)(const float* x, int64_t count, uint8_t* out);
};

}  // namespace vllm::kernels
