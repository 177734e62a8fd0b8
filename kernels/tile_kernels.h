// TileKernels: linear layers whose inner loop multiplies several columns at once with the CPU's dot-product
// instructions. x is packed once for all threads that multiply by it. A result depends only on its row of x and its
// row of w, not on the other rows, the tiles or the split into panels.
// Without a dot product of bfloat16, bfloat16 weights are multiplied by float32 inputs; with one, inputs are rounded
// to bfloat16, as in PyTorch.
#pragma once

#include <cstdint>

#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm::kernels {

struct TileKernels {
  // Packs one tile of x [to.num_rows, to.num_columns] into `to`, rounded to bfloat16. Null if the instruction set has
  // no dot product of bfloat16.
  void (*pack_bfloat16)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // y[r, n] = bias[n] + sum over k of x[r, k] * w[n, k] for panels [panel_begin, panel_end) of w. w is bfloat16.
  // Columns are added in pairs, ascending, as vdpbf16ps does. y: [x.num_rows, w.num_rows] with y_stride; bias may be
  // null.
  void (*linear_bfloat16)(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                          int64_t y_stride, int64_t panel_begin, int64_t panel_end);

  // Like pack_bfloat16, but rounds to int8 with one scale per 128 columns: the largest magnitude becomes 127. If a row
  // contains NaN or infinity, its results are not finite either.
  void (*pack_int8)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // Like linear_bfloat16. Codes are multiplied and added exactly within 32 columns, then scaled and added in float32.
  void (*linear_quant)(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                       int64_t y_stride, int64_t panel_begin, int64_t panel_end);
};

}  // namespace vllm::kernels
