// TileKernels: linear layers whose inner loop takes several columns at once, in the machine's own dot products. x is
// packed once for all the threads that multiply by it. A result depends on nothing but its row of x and its row of w:
// not on the other rows, on tiles or on the split of panels.
#pragma once

#include <cstdint>

#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

struct TileKernels {
  // Fills one tile of `to` with its rows of x [to.num_rows, to.num_columns], rounded to bfloat16. Null where the
  // instruction set has no dot product of bfloat16.
  void (*pack_bfloat16)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // y[r, n] = sum over k of x[r, k] * w[n, k] + bias[n] for panels [panel_begin, panel_end) of w, which is bfloat16;
  // columns in pairs, ascending, as vdpbf16ps adds them. y: [x.num_rows, w.num_rows] with y_stride; bias may be null.
  void (*linear_bfloat16)(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                          int64_t y_stride, int64_t panel_begin, int64_t panel_end);

  // As pack_bfloat16, rounded to int8 with a scale for each 128 columns: the largest magnitude becomes 127. A row with
  // a number that is not finite gives results that are not.
  void (*pack_int8)(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile);
  // As linear_bfloat16: codes are multiplied and added exactly within 32 columns, then scaled and added in float32.
  void (*linear_quant)(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                       int64_t y_stride, int64_t panel_begin, int64_t panel_end);
};

}  // namespace vllm
