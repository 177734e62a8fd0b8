// CheckpointMatrix: a part of a checkpoint's matrix as the quantized kernels take it. Made at load, then owned by the
// layer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/model_loader/weights.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"

namespace vllm {

struct CheckpointMatrix {
  CheckpointQuantMatrix matrix;
  // Stored column -> column of the part; -1 for padding, whose codes meet a zero of x. Empty: the same.
  std::vector<int32_t> column_order;
};

// Rows [row_begin, + num_rows) and columns [column_begin, + num_columns) of a matrix [out_features, in_features].
struct MatrixPart {
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t row_begin = 0;
  int64_t num_rows = 0;
  int64_t column_begin = 0;
  int64_t num_columns = 0;
};

// Runs its second argument for 0 to count - 1, on several threads.
using ForEach = std::function<void(int64_t count, const std::function<void(int64_t i)>&)>;

// Of a tensor of GGML blocks; columns that begin or end inside a block keep the whole block. Throws std::bad_alloc.
CheckpointMatrix StoreBlocks(const TensorView& view, const MatrixPart& part, const BufferSource& buffers,
                             const ForEach& for_each);

// The same where it lies in the file; nothing where its rows do not follow each other there.
struct BlocksView {
  CheckpointQuantMatrixView matrix;
  std::vector<int32_t> column_order;  // as in CheckpointMatrix
};
std::optional<BlocksView> ViewBlocks(const TensorView& view, const MatrixPart& part);

}  // namespace vllm
