// LoRAWorkspace: scratch for the LoRA part of a linear layer. The layers of a rank share it, one layer at a time.
// Reserved at load. Part of the rank's Workspace; used on the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

struct LoRAWorkspace {
  // Rows [begin, begin + count) of the scratch buffers, which have the same adapter.
  struct Piece {
    size_t slot = 0;
    int64_t begin = 0;
    int64_t count = 0;
  };
  // A part of the outputs of a piece: panels of B of a block.
  struct Run {
    Piece piece;
    size_t block = 0;
    int64_t begin_panel = 0;
    int64_t end_panel = 0;
  };

  std::vector<int32_t> rows;  // the rows of the call that have an adapter, ordered by slot, then by row
  std::vector<size_t> begin;  // [num_adapters + 1] index in `rows` of each adapter's first row
  std::vector<Piece> pieces;
  std::vector<Run> runs;
  kernels::AlignedBuffer x;       // [kRowsAtOnce, in_features] gathered inputs
  kernels::AlignedBuffer shrunk;  // [kRowsAtOnce, rank] A x
  kernels::AlignedBuffer delta;   // [kRowsAtOnce, out_features] B (A x)

  size_t size_bytes() const {
    return rows.capacity() * sizeof(rows[0]) + begin.capacity() * sizeof(begin[0]) + pieces.capacity() * sizeof(Piece) +
           runs.capacity() * sizeof(Run) + x.size_bytes() + shrunk.size_bytes() + delta.size_bytes();
  }
};

}  // namespace vllm
