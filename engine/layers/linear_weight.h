// LinearWeight: a rank's matrix of a linear layer in the form its backend wants: packed panels for our kernels, or
// plain float32 rows for OpenBLAS.
#pragma once

#include <cstdint>

#include "engine/layers/rank_context.h"
#include "engine/model_loader/weights.h"
#include "kernels/aligned_buffer.h"
#include "kernels/openblas.h"
#include "kernels/packed_matrix.h"

namespace vllm {

class LinearWeight {
 public:
  LinearWeight() = default;
  // Zeros. Throws ConfigError when OpenBLAS is wanted for another type than float32, ResourceError when it cannot be
  // loaded.
  LinearWeight(const RankContext& context, int64_t num_rows, int64_t num_columns, DType dtype);

  int64_t num_rows() const { return num_rows_; }
  // Columns [first_column, + num_columns) of the source's rows become rows [first_row, + rows.count). The source is
  // [out, in], or [in, out] when it is transposed. Throws ModelError when its type cannot be used.
  void FillRows(const TensorView& source, bool transposed, Shard rows, int64_t first_column, int64_t first_row);

  // y [num_rows of x, num_rows()] = x w^T + bias, on the rank's threads; bias may be null.
  void Multiply(const RankContext& context, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                float* y, int64_t y_stride) const;

 private:
  void FillRow(const std::byte* source, DType dtype, int64_t row);
  void MultiplyDense(const RankContext& context, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                     float* y, int64_t y_stride) const;

  int64_t num_rows_ = 0;
  int64_t num_columns_ = 0;
  PackedMatrix packed_;                  // our kernels' form, or
  const OpenBlas* open_blas_ = nullptr;  // where set:
  AlignedBuffer dense_;                  // [num_rows, num_columns] float32
};

// y = x w^T + bias by our kernels, on the rank's threads; bias may be null.
void MultiplyPacked(const RankContext& context, const PackedMatrixView& w, const float* bias, const float* x,
                    int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride);

}  // namespace vllm
