// Kernels: a table of functions. There is one constant table per instruction set, selected at run time. A kernel
// allocates no memory, starts no work on other threads, and may run on any thread. The reduction order of an output
// element does not depend on how many rows of x or of the weight the call covers. So on one instruction set, results
// are bit-identical for any split of these rows into calls.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/dtype.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/recurrent.h"
#include "kernels/row_kernels.h"
#include "kernels/tile_kernels.h"

namespace vllm::kernels {

struct Kernels {
  // y[r, n] = bias[n] + sum over k of x[r, k] * w[n, k], k ascending, for panels [panel_begin, panel_end) of w.
  // x: [num_rows, w.num_columns] with x_stride; y: [num_rows, w.num_rows] with y_stride; bias may be null.
  void (*linear)(const float* x, int64_t x_stride, int64_t num_rows, const PackedMatrixView& w, const float* bias,
                 float* y, int64_t y_stride, int64_t panel_begin, int64_t panel_end);

  // out[i] = weight[i] * x[i] / sqrt(mean(x^2) + eps) over one row of n. out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* out);

  // out[i] = weight[i] * (x[i] - mean) / sqrt(variance + eps) + bias[i] over one row of n. weight and bias may be
  // null. out may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t n, float* out);

  // The two halves of rms_norm, for a row that is split over several ranks. sum_of_squares returns the sum of x[i]^2;
  // mul_scaled sets out[i] = weight[i] * (x[i] * factor).
  float (*sum_of_squares)(const float* x, int64_t n);
  void (*mul_scaled)(const float* x, const float* weight, float factor, int64_t n, float* out);

  // out[i] = activation(x[i]) * factor[i]. factor may be null. out may be x or factor.
  void (*activation)(Activation activation, const float* x, const float* factor, int64_t n, float* out);
  // With g = min(gate[i], limit) and u = up[i] clamped to [-limit, limit]: out[i] = (u + 1) * g * sigmoid(alpha * g).
  // out may be gate or up.
  void (*clamped_swiglu)(const float* gate, const float* up, float alpha, float limit, int64_t n, float* out);

  // x[i] += y[i].
  void (*add)(float* x, const float* y, int64_t n);
  // x[i] += y[i] * factor.
  void (*add_scaled)(float* x, const float* y, float factor, int64_t n);
  // x[i] *= factor.
  void (*scale)(float* x, float factor, int64_t n);
  // x[i] = cap * tanh(x[i] / cap).
  void (*soft_cap)(float* x, float cap, int64_t n);

  // Rotates one head of 2 * half values in place. The pairs are (i, i + half), as in transformers' rotate_half.
  // cos, sin: [half].
  void (*rotary)(float* head, const float* cos, const float* sin, int64_t half);
  // The same for the pairs (2 * i, 2 * i + 1).
  void (*rotary_neighbors)(float* head, const float* cos, const float* sin, int64_t half);

  // out[i] = exp(x[i]), with a relative error of at most 3e-7 for x in [-87, 88]. exp(-inf) is 0, NaN stays NaN, and
  // x above 88 gives about 2^127. Only tests call this; the other kernels inline Exp of impl/math.inl.
  void (*exp)(const float* x, int64_t n, float* out);

  // See attention.h.
  const AttentionKernels* attention;
  // See checkpoint_quant_matrix.h.
  const QuantKernels* quant;
  // See tile_kernels.h.
  const TileKernels* tiles;
  // See recurrent.h.
  const RecurrentKernels* recurrent;
  // See row_kernels.h.
  const RowKernels* rows;
};

}  // namespace vllm::kernels
