// RowKernels: passes over the complete blocks of one row of logits. Part of the Kernels table. Results do not depend on
// the instruction set, because every version executes the same IEEE operations in the same order. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vllm::kernels {

inline constexpr size_t kRowBlock = 64;

struct RowKernels {
  // block_max[b] = maximum of block b. Returns false if the row contains NaN or +inf; the maxima are then unspecified.
  // row: [num_blocks, kRowBlock], block_max: [num_blocks].
  bool (*block_maxima)(const float* row, size_t num_blocks, float* block_max);
  // block_sum[b] = sum of Weight() (engine/sample/row_ops.h) over block b, accumulated in eight lanes. block_sum:
  // [num_blocks].
  void (*block_weight_sums)(const float* row, size_t num_blocks, float max, float inverse_temperature,
                            double* block_sum);
  // Returns the number of entries of the row that are at least `value`.
  int64_t (*count_at_least)(const float* row, size_t num_blocks, float value);
};

}  // namespace vllm::kernels
