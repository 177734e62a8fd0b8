// GroupSource: a matrix of codes with scales for groups of columns, independent of the checkpoint's layout. StoreGroups
// converts it to the kernels' layout. Built on one thread for one matrix during load; borrows the weight source's
// bytes. Several threads may call its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/model_loader/quantization/checkpoint_matrix.h"

namespace vllm {

struct GroupSource {
  kernels::QuantFormat format = kernels::QuantFormat::kGroupUInt4;
  kernels::DType scale_type = kernels::DType::kFloat32;  // ignored if there is a scale_table
  std::vector<int32_t> group_of_column;                  // [in_features]
  // Writes the codes of rows [row, row + count) of the matrix, one code per byte: [count, in_features].
  std::function<void(int64_t row, int64_t count, uint8_t* codes)> codes;
  std::function<const std::byte*(int64_t row, int64_t group)> scale;  // address of the scale; may be unaligned
  std::function<int32_t(int64_t row, int64_t group)> zero;            // empty: zero_point applies everywhere
  int32_t zero_point = 0;
  // Zero points that need not be integers; not together with `zero`.
  std::function<float(int64_t row, int64_t group)> float_zero;
  std::vector<float> table;              // [16]: the values of the codes in kGroupTable4
  std::vector<float> scale_table;        // [256]: if not empty, the scales are bytes that select an entry
  bool has_scale_per_input_row = false;  // see CheckpointQuantMatrixView
};

// Copies rows of the matrix. Sorts the columns by group, and pads each group to a multiple of 16 columns and the
// matrix to a multiple of kQuantColumns. Throws std::bad_alloc.
CheckpointMatrix StoreGroups(const GroupSource& source, const MatrixRows& rows, const kernels::BufferSource& buffers,
                             const ForEach& for_each);

}  // namespace vllm
