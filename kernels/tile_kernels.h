// TileKernels: linear layers whose inner loop multiplies several columns at once, with dot-product instructions if the
// instruction set has any. x is packed once for all threads that multiply by it. Any thread may call a kernel. An
// element of y depends only on its row of x, its row of w and its bias, not on other rows, on the tiles or on the split
// into panels.
// Only the kernels of one table know the order of the units in PackedActivations.
// If the instruction set has a dot product of bfloat16, x is rounded to bfloat16 for bfloat16 weights, as in PyTorch.
// If not, Kernels::linear multiplies these weights by float32 inputs.
#pragma once

#include <cstdint>

#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm::kernels {

using LinearQuantFunction = void (*)(const PackedActivationsView& x, const PackedQuantView& w, const float* bias,
                                     float* y, int64_t y_stride, int64_t panel_begin, int64_t panel_end);

struct TileKernels {
  // Packs one tile of x [to.num_rows, to.num_columns] into `to`, rounded to bfloat16. This function and linear_bfloat16
  // are null if the instruction set has no dot product of bfloat16. to.tile_rows must be bfloat16_tile_rows, and
  // to.columns_per_unit bfloat16_columns_per_unit. For pack_int8, they are what Int8TileRows returns, and 4.
  void (*pack_bfloat16)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // y[r, n] = bias[n] + sum over k of x[r, k] * w[n, k] for panels [panel_begin, panel_end) of w. w is bfloat16.
  // Columns are added in pairs, ascending, as vdpbf16ps and bfdot do. With AMX, runs of 32 columns are added as
  // tdpbf16ps does. y: [x.num_rows, w.num_rows] with y_stride; bias may be null.
  void (*linear_bfloat16)(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                          int64_t y_stride, int64_t panel_begin, int64_t panel_end);

  // Like pack_bfloat16, but rounds to int8 with one scale per 128 columns, so that their largest magnitude becomes 127.
  // If no magnitude in the 128 columns exceeds 1e-36, their codes are zero. If a row of x contains NaN or infinity,
  // linear_quant writes NaN to that row of y.
  void (*pack_int8)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // Like linear_bfloat16. Products of codes are summed exactly over the columns that share a weight scale (16, 32 or
  // 128), then scaled and added in float32.
  LinearQuantFunction linear_quant;
  int64_t bfloat16_tile_rows = kTileRows;
  // Returns the tile_rows of int8 columns. If null, they are kTileRows.
  int64_t (*int8_tile_rows)(int64_t num_rows, const CodeSums& code_sums) = nullptr;
  // With this many rows, reading the weights again for the next rows costs little compared with the arithmetic.
  int64_t rows_at_once = 8 * kTileRows;
  int64_t bfloat16_columns_per_unit = 2;  // of pack_bfloat16

  int64_t Int8TileRows(int64_t num_rows, const CodeSums& code_sums) const {
    return int8_tile_rows == nullptr ? kTileRows : int8_tile_rows(num_rows, code_sums);
  }
};

}  // namespace vllm::kernels
