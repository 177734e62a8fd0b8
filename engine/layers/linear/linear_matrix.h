// LinearMatrix: one matrix of a linear layer, in the format of its backend. Our kernels read floating-point weights or
// quantized codes packed into panels, or quantized codes in the checkpoint's format. OpenBLAS reads float32 rows. Owned
// by a LinearWeight. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "engine/layers/shard.h"
#include "engine/layers/step_context.h"
#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/openblas.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

// y[r, n] = sum over k of x[r, k] * w[n, k] + bias[n].
struct LinearCall {
  const float* bias = nullptr;  // may be null
  const float* x = nullptr;     // [num_rows, num_columns], rows x_stride floats apart
  int64_t x_stride = 0;
  int64_t num_rows = 0;
  float* y = nullptr;  // [num_rows, rows of w], rows y_stride floats apart
  int64_t y_stride = 0;
};

// A matrix for OpenBLAS: float32 [num_rows, num_columns].
struct DenseMatrix {
  DenseMatrix(const kernels::OpenBlas* library, int64_t rows, int64_t columns, const kernels::BufferSource& buffers);

  const kernels::OpenBlas* blas;
  int64_t num_rows;
  int64_t num_columns;
  kernels::AlignedBuffer values;
};

class LinearMatrix {
 public:
  // The rows of the result are those of the ranges, which begin at panels of `matrix`. `matrix` may also have rows of
  // other ranks.
  LinearMatrix(kernels::PackedMatrix matrix, std::vector<Shard> ranges)
      : matrix_(std::move(matrix)), ranges_(std::move(ranges)) {}
  // See CheckpointMatrix for `column_order`.
  LinearMatrix(kernels::PackedQuantMatrix matrix, std::vector<Shard> ranges, std::vector<int32_t> column_order = {})
      : matrix_(std::move(matrix)), ranges_(std::move(ranges)), column_order_(std::move(column_order)) {}
  // All rows of `matrix`.
  explicit LinearMatrix(kernels::PackedQuantMatrix matrix) : matrix_(std::move(matrix)) {
    ranges_ = {{0, std::get<kernels::PackedQuantMatrix>(matrix_).num_rows()}};
  }
  explicit LinearMatrix(CheckpointMatrix stored)
      : matrix_(std::move(stored.matrix)), column_order_(std::move(stored.column_order)) {}
  explicit LinearMatrix(DenseMatrix matrix) : matrix_(std::move(matrix)) {}

  int64_t num_rows() const;
  // Returns the bytes of the rows of this rank.
  size_t size_bytes() const;

  // Reserves the rank's scratch for UnpackRow, and for Multiply with up to `max_rows` rows of x.
  void Reserve(const StepContext& step, int64_t max_rows) const;
  // Computes `call` on the rank's threads.
  void Multiply(const StepContext& step, const LinearCall& call) const;
  // The two halves of Multiply, for a matrix whose kernel packs x, which several ranks or callers may then pack.
  // PackedX returns memory of `buffer`, or nullopt if the kernel does not pack x.
  std::optional<kernels::PackedActivationsView> PackedX(const StepContext& step, int64_t num_rows,
                                                        kernels::PackedActivations& buffer) const;
  // Packs x, [to.num_rows, to.num_columns] with rows x_stride floats apart, on the rank's threads.
  void Pack(const StepContext& step, const float* x, int64_t x_stride, const kernels::PackedActivationsView& to) const;
  // Packs the single tile `to` of x. Several threads may pack different tiles.
  void PackTile(const StepContext& step, const float* x, int64_t x_stride,
                const kernels::PackedActivationsView& to) const;
  // Computes `call` for the packed x.
  void MultiplyPacked(const StepContext& step, const kernels::PackedActivationsView& x, const LinearCall& call) const;
  // Returns where the packed matrix stores `rows` of the result, or nullopt if these rows do not begin at a panel or
  // are not next to each other.
  std::optional<Shard> StoredRows(const Shard& rows) const;
  // Multiplies the packed x by stored rows, which begin at a panel, on the calling thread. y: [x.num_rows,
  // stored_rows.count], with rows y_stride floats apart; bias: [stored_rows.count] or null.
  void MultiplyRows(const StepContext& step, const kernels::PackedActivationsView& x, const Shard& stored_rows,
                    const float* bias, float* y, int64_t y_stride) const;
  // Writes one row as float32 to out, [num_columns]. Concurrent calls need different values of `thread`, all below
  // the rank's number of threads. REQUIRES: Reserve was called.
  void UnpackRow(const StepContext& step, int64_t row, int thread, float* out) const;

 private:
  std::variant<kernels::PackedMatrix, kernels::PackedQuantMatrix, kernels::CheckpointQuantMatrix, DenseMatrix> matrix_;
  std::vector<Shard> ranges_;  // of packed matrices
  std::vector<int32_t> column_order_;
};

}  // namespace vllm
