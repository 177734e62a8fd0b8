// LinearWeight: a rank's matrix of a linear layer in the form its backend wants: packed panels for our kernels, or
// plain float32 rows for OpenBLAS.
#pragma once

#include <cstdint>

#include "engine/layers/rank_context.h"
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
  // See PackedMatrix::PackRows.
  void FillRows(const std::byte* source, DType source_dtype, int64_t source_stride_bytes, int64_t first_row,
                int64_t count);

  // y [num_rows of x, num_rows()] = x w^T + bias, on the rank's threads; bias may be null.
  void Multiply(const RankContext& context, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                float* y, int64_t y_stride) const;

 private:
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
