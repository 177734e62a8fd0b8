// GroupSource: a matrix of codes with scales for groups of columns, however a checkpoint lays them out, and the way
// from there to the form of the kernels. Made for one matrix while it is loaded; borrows the weight source's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/model_loader/quantization/checkpoint_matrix.h"

namespace vllm {

struct GroupSource {
  QuantFormat format = QuantFormat::kGroupUInt4;
  DType scale_type = DType::kFloat32;
  std::vector<int32_t> group_of_column;  // [in_features]
  // Codes of rows [row, row + count) of the matrix and of the part's columns, one a byte: [count, part.num_columns].
  std::function<void(int64_t row, int64_t count, uint8_t* codes)> codes;
  std::function<const std::byte*(int64_t row, int64_t group)> scale;
  std::function<int32_t(int64_t row, int64_t group)> zero;  // none: zero_point everywhere
  int32_t zero_point = 0;
};

// Columns are stored in the order of their groups where groups do not come in runs of 16 columns.
CheckpointMatrix StoreGroups(const GroupSource& source, const MatrixPart& part, const BufferSource& buffers,
                             const ForEach& for_each);

}  // namespace vllm
