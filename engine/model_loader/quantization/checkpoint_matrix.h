// CheckpointMatrix: rows of a checkpoint's quantized matrix, in the layout that the quantized kernels read. Built on
// the rank's threads during load. The layer keeps it, or packs it for the integer kernels and drops it. Immutable after
// construction; any thread may read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/model_loader/weights.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"

namespace vllm {

struct CheckpointMatrix {
  kernels::CheckpointQuantMatrix matrix;
  // Maps a stored column to a column of the matrix. -1 marks padding. Its codes are multiplied by zeros. An empty
  // vector means the identity.
  std::vector<int32_t> column_order;
};

// num_rows rows of a matrix [out_features, in_features], from row_begin on.
struct MatrixRows {
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t row_begin = 0;
  int64_t num_rows = 0;
};

// Calls the given function for each i in [0, count), possibly on several threads. Returns when all calls have returned.
using ForEach = std::function<void(int64_t count, const std::function<void(int64_t i)>&)>;

// Copies rows of a tensor of GGML blocks. REQUIRES: BlockFormat(view.type) is not nullopt. Throws std::bad_alloc.
CheckpointMatrix StoreBlocks(const TensorView& view, const MatrixRows& rows, const kernels::BufferSource& buffers,
                             const ForEach& for_each);

// Like StoreBlocks, but returns a view of the mapped file instead of a copy. Returns nullopt if the rows are
// interleaved in the file.
std::optional<kernels::CheckpointQuantMatrixView> ViewBlocks(const TensorView& view, const MatrixRows& rows);

}  // namespace vllm
