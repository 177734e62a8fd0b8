// PackedActivations: rows of x, packed so that the inner loop over a packed weight can broadcast them unit by unit. A
// rank's workspace owns it; the rank's threads fill different tiles. A unit of four bytes holds two bfloat16 columns,
// one column rounded to bfloat16 as a float, or four int8 columns. Rows are grouped into tiles of up to tile_rows,
// which is kTileRows or kAmxTileRows. In tiles of up to kTileRows, the units of the same columns are contiguous. Unit u
// of row r, in a tile of R rows that starts at row `begin`, is
//   units[begin * num_units + u * R + r - begin].
// In those of up to kAmxTileRows, chunks of 16 units of a row are contiguous, and the chunks of the same columns follow
// each other. Unit 16 c + i of row r, in a chunk of W units, which are 16 or those left, is
//   units[begin * num_units + 16 * c * R + (r - begin) * W + i].
#pragma once

#include <cstdint>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm::kernels {

inline constexpr int64_t kTileRows = 12;
inline constexpr int64_t kAmxTileRows = 16;    // the most rows of an AMX register
inline constexpr int64_t kScaleColumns = 128;  // columns of x per scale, unless the whole row has one scale
// scale_columns of a row with a single scale. Longer rows are not allowed, because the sum of their products could
// overflow int32.
inline constexpr int64_t kRowColumns = 65536;
inline constexpr int64_t kBlockColumns = 32;  // int8 columns are zero-padded to a multiple of this

// Rows are divided into tiles of at most tile_rows, whose sizes differ by at most one.
[[gnu::always_inline]] inline int64_t NumTiles(int64_t num_rows, int64_t tile_rows = kTileRows) {
  return (num_rows + tile_rows - 1) / tile_rows;
}
[[gnu::always_inline]] inline int64_t TileBegin(int64_t num_rows, int64_t tile, int64_t tile_rows = kTileRows) {
  return num_rows * tile / NumTiles(num_rows, tile_rows);
}

// Describes the sums of x's codes that the zero points and minimums of a weight require.
struct CodeSums {
  int64_t columns = kScaleColumns;  // columns per sum and per scale of the weight: 16, 32, 128 or kRowColumns
  int32_t zero = 128;               // the weight's zero point
  bool keep_sums = false;           // the weight has minimums, so store the sums in addition to the offsets

  friend bool operator==(const CodeSums&, const CodeSums&) = default;
};

struct PackedActivationsView {
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  int64_t num_units = 0;  // per row
  uint32_t* units = nullptr;
  // int8 only. x[k] is approximately code[k] * scale[k / scale_columns()]. An entry of `sums` is the sum of
  // code_sums.columns codes, and the offset of these columns is -code_sums.zero times their sum. All three arrays are
  // interleaved by tile, like the units.
  float* scales = nullptr;
  int32_t* offsets = nullptr;
  float* sums = nullptr;  // null unless code_sums.keep_sums
  CodeSums code_sums = {};
  int64_t tile_rows = kTileRows;
  int64_t columns_per_unit = 4;

  [[gnu::always_inline]] int64_t num_tiles() const { return NumTiles(num_rows, tile_rows); }
  [[gnu::always_inline]] int64_t tile_begin(int64_t tile) const { return TileBegin(num_rows, tile, tile_rows); }
  // Columns per scale. A weight with one scale per row is multiplied by rows with one scale.
  [[gnu::always_inline]] int64_t scale_columns() const {
    return code_sums.columns > kScaleColumns ? code_sums.columns : kScaleColumns;
  }
  [[gnu::always_inline]] int64_t num_scales() const { return (num_columns + scale_columns() - 1) / scale_columns(); }
  [[gnu::always_inline]] int64_t num_offsets() const {
    return (num_columns + code_sums.columns - 1) / code_sums.columns;
  }
  friend bool operator==(const PackedActivationsView&, const PackedActivationsView&) = default;
  // Returns the view of whole tiles, which have rows [begin, begin + count).
  PackedActivationsView Rows(int64_t begin, int64_t count) const {
    PackedActivationsView rows = *this;
    rows.num_rows = count;
    rows.units += begin * num_units;
    if (scales != nullptr) rows.scales += begin * num_scales();
    if (offsets != nullptr) rows.offsets += begin * num_offsets();
    if (sums != nullptr) rows.sums += begin * num_offsets();
    return rows;
  }
  // Returns the view of columns [begin, begin + count) of a view with one tile. `begin` and `count` are multiples of
  // kScaleColumns, unless these are the last columns. REQUIRES: a scale belongs to kScaleColumns columns.
  PackedActivationsView Columns(int64_t begin, int64_t count) const {
    PackedActivationsView columns = *this;
    const int64_t first_unit = begin / columns_per_unit;
    columns.num_columns = count;
    columns.num_units = begin + count == num_columns ? num_units - first_unit : count / columns_per_unit;
    columns.units += first_unit * num_rows;
    if (scales != nullptr) columns.scales += begin / kScaleColumns * num_rows;
    if (offsets != nullptr) columns.offsets += begin / code_sums.columns * num_rows;
    if (sums != nullptr) columns.sums += begin / code_sums.columns * num_rows;
    return columns;
  }
};

// Memory for one PackedActivationsView at a time. It grows to the largest size requested. Only one thread at a time may
// request a view.
class PackedActivations {
 public:
  // Each of these returns a view for the kernels to fill, which is valid until the next call. A call allocates only if
  // an array has to be larger than in every earlier call, so a call with the largest sizes reserves enough memory for
  // all later calls. Throws std::bad_alloc.
  // columns_per_unit is 1 or 2. An odd number of columns is padded to pairs in both cases.
  PackedActivationsView BFloat16(int64_t num_rows, int64_t num_columns, int64_t tile_rows, int64_t columns_per_unit);
  PackedActivationsView Int8(int64_t num_rows, int64_t num_columns, const CodeSums& code_sums, int64_t tile_rows);

  size_t size_bytes() const {
    return units_.size_bytes() + scales_.size_bytes() + offsets_.size_bytes() + sums_.size_bytes();
  }

 private:
  AlignedBuffer units_, scales_, offsets_, sums_;
};

}  // namespace vllm::kernels
