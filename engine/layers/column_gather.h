// Copies columns of matrices between the tensor-parallel ranks. Each element is copied from the one rank that computed
// it, so the result does not depend on the number of ranks. Called on all ranks, on each rank's thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/layers/communicator.h"
#include "engine/layers/shard.h"
#include "engine/layers/step_context.h"

namespace vllm {

// Rows x, with rows `stride` floats apart.
struct GatheredRows {
  const float* x = nullptr;
  int64_t stride = 0;
};

// Reserves the rank's workspace for GatherColumns.
void ReserveGather(const StepContext& step, int64_t num_rows, int64_t num_columns);

// Returns rows [first_row, first_row + num_rows) of the columns that the ranks have published as `in`: those of rank r
// are columns[r]. With one rank, these are the published rows, otherwise a copy in the rank's workspace, which is valid
// until the next call.
GatheredRows GatherColumns(const StepContext& step, std::span<const PeerBuffers> peers, std::span<const Shard> columns,
                           int64_t first_row, int64_t num_rows);

// Writes rows [first_row, first_row + num_rows) of the columns of all ranks to out, [num_rows, columns of all ranks],
// on the calling thread.
void GatherRows(std::span<const PeerBuffers> peers, std::span<const Shard> columns, int64_t first_row, int64_t num_rows,
                float* out);

// Copies `columns` of this rank's `out`, [num_rows, stride], to `out` of all other ranks.
void SendColumns(const StepContext& step, std::span<const PeerBuffers> peers, std::span<const Shard> columns,
                 int64_t num_rows, int64_t stride);

// Completes data, [num_rows, stride], of which each rank has computed its `columns`, on all ranks.
void AllGather(const StepContext& step, std::span<const Shard> columns, int64_t num_rows, int64_t stride, float* data);

}  // namespace vllm
