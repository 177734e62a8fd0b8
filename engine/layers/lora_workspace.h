// LoRAWorkspace: scratch for the LoRA part of a linear layer. The layers of a rank share it, one layer at a time.
// Reserved at load. Part of the rank's Workspace; used on the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

struct LoRAWorkspace {
  std::vector<int32_t> rows;      // the rows of the call that have an adapter, ordered by slot, then by row
  std::vector<size_t> begin;      // [num_adapters + 1] index in `rows` of each adapter's first row
  kernels::AlignedBuffer x;       // [kRowsAtOnce, in_features] gathered inputs
  kernels::AlignedBuffer shrunk;  // [kRowsAtOnce, rank] A x
  kernels::AlignedBuffer delta;   // [kRowsAtOnce, out_features] B (A x)

  size_t size_bytes() const {
    return rows.capacity() * sizeof(rows[0]) + begin.capacity() * sizeof(begin[0]) + x.size_bytes() +
           shrunk.size_bytes() + delta.size_bytes();
  }
};

}  // namespace vllm
