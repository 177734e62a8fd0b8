// PackedActivations: rows of x in the form that the inner loop of a packed weight broadcasts: units of four bytes that
// hold two bfloat16 columns or four int8 columns, for tiles of up to twelve rows. Within a tile the rows' units of one
// column lie together: unit u of row r of a tile of R rows is at units[begin * num_units + u * R + r - begin], where
// `begin` is the tile's first row.
#pragma once

#include <cstdint>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

inline constexpr int64_t kTileRows = 12;
inline constexpr int64_t kScaleColumns = 128;  // columns of x that share a scale
inline constexpr int64_t kBlockColumns = 32;   // int8 columns are filled up with zeros to a multiple of this

// Rows are cut into tiles whose sizes differ by at most one.
[[gnu::always_inline]] inline int64_t NumTiles(int64_t num_rows) { return (num_rows + kTileRows - 1) / kTileRows; }
[[gnu::always_inline]] inline int64_t TileBegin(int64_t num_rows, int64_t tile) {
  return num_rows * tile / NumTiles(num_rows);
}

// Sums of x's codes that a weight needs beside them.
struct CodeSums {
  int64_t columns = kScaleColumns;  // of a sum, as many as share a scale of the weight: 16, 32 or 128
  int32_t zero = 128;               // the weight's level of zero
  bool are_kept = false;            // not only as offsets: the weight has minimums
};

struct PackedActivationsView {
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  int64_t num_units = 0;  // of a row
  uint32_t* units = nullptr;
  // int8 only: x[k] is about code[k] * scale[k / 128]; an offset is -code_sums.zero times a sum of codes. In the units'
  // order: of a tile's rows together.
  float* scales = nullptr;
  int32_t* offsets = nullptr;
  float* sums = nullptr;  // null where they are not kept
  CodeSums code_sums = {};

  [[gnu::always_inline]] int64_t num_scales() const { return (num_columns + kScaleColumns - 1) / kScaleColumns; }
  [[gnu::always_inline]] int64_t num_offsets() const {
    return (num_columns + code_sums.columns - 1) / code_sums.columns;
  }
};

// The memory of one PackedActivationsView at a time; grows to the largest that was asked for. Used by one thread at a
// time.
class PackedActivations {
 public:
  // To be filled by the kernels; valid until the next call. They allocate only for more than any call before, so one
  // call with the largest sizes reserves the memory. Throw std::bad_alloc.
  PackedActivationsView BFloat16(int64_t num_rows, int64_t num_columns);
  PackedActivationsView Int8(int64_t num_rows, int64_t num_columns, const CodeSums& code_sums);

  size_t size_bytes() const {
    return units_.size_bytes() + scales_.size_bytes() + offsets_.size_bytes() + sums_.size_bytes();
  }

 private:
  AlignedBuffer units_, scales_, offsets_, sums_;
};

}  // namespace vllm
