// LinearRows: which rows of the checkpoint's matrices a linear layer has, on all ranks together and on each rank. Plain
// values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/shard.h"
#include "engine/layers/step_context.h"

namespace vllm {

// Rows [shard.begin, shard.begin + shard.count) of the checkpoint matrix `name`.weight [total_rows, in_features] and of
// `name`.bias. A quantized checkpoint may have other tensors instead of `name`.weight or in addition to it. The rows of
// a fused tensor, such as a matrix of q, k and v, are counted from the first row of the whole tensor.
struct OutputSlice {
  std::string name;
  int64_t total_rows = 0;
  Shard shard;
};

// Stacked slices. Those of a rank consist of rows of `all`, in the same order.
struct LinearRows {
  // Every rank has all rows.
  LinearRows(std::vector<OutputSlice> slices) : all(std::move(slices)) {}  // NOLINT: implicit
  LinearRows(std::initializer_list<OutputSlice> slices) : all(slices) {}

  const std::vector<OutputSlice>& Of(int rank) const { return ranks.empty() ? all : ranks[static_cast<size_t>(rank)]; }

  std::vector<OutputSlice> all;
  std::vector<std::vector<OutputSlice>> ranks;  // by rank, or empty if every rank has all rows
};

// Returns the rows of a layer that is split. slices_of(rank, world_size) returns the slices of a rank.
template <typename F>
LinearRows SplitRows(const StepContext& step, const F& slices_of) {
  LinearRows rows(slices_of(0, 1));
  const int world_size = step.world_size();
  for (int rank = 0; world_size > 1 && rank < world_size; ++rank) rows.ranks.push_back(slices_of(rank, world_size));
  return rows;
}

// Returns the rows of a matrix that is split by ShardOfRows.
LinearRows SplitMatrix(const StepContext& step, const std::string& name, int64_t num_rows);

// Returns which of the stacked rows of `all` the slices of `own` have, as ranges in the order of `own`. Adjacent ranges
// are merged. REQUIRES: `all` contains these rows.
std::vector<Shard> StackedRanges(const std::vector<OutputSlice>& all, const std::vector<OutputSlice>& own);

}  // namespace vllm
