// Shard: one tensor-parallel rank's share of a dimension. Plain values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrix/packed_matrix.h"

namespace vllm {

// The elements [begin, begin + count).
struct Shard {
  int64_t begin = 0;
  int64_t count = 0;
};

// Returns the share of `rank` if `total` elements are split into `world_size` ranges whose lengths differ by at most
// one.
inline Shard ShardOf(int64_t total, int rank, int world_size) {
  const int64_t begin = total * rank / world_size;
  return {begin, total * (rank + 1) / world_size - begin};
}

// Like ShardOf, for the rows of a matrix: shares begin at panels of PackedMatrix, if there is a panel for each rank.
inline Shard ShardOfRows(int64_t total, int rank, int world_size) {
  if (total < kernels::kPanelRows * world_size) return ShardOf(total, rank, world_size);
  const int64_t num_panels = (total + kernels::kPanelRows - 1) / kernels::kPanelRows;
  const Shard panels = ShardOf(num_panels, rank, world_size);
  const int64_t begin = panels.begin * kernels::kPanelRows;
  const int64_t end = (panels.begin + panels.count) * kernels::kPanelRows;
  return {begin, (end < total ? end : total) - begin};
}

// Returns shard_of(rank) for each rank.
template <typename F>
std::vector<Shard> ShardsOfRanks(int world_size, const F& shard_of) {
  std::vector<Shard> shards;
  for (int rank = 0; rank < world_size; ++rank) shards.push_back(shard_of(rank));
  return shards;
}

// Returns ShardOfRows of each rank.
inline std::vector<Shard> ShardsOfRows(int64_t total, int world_size) {
  return ShardsOfRanks(world_size, [&](int rank) { return ShardOfRows(total, rank, world_size); });
}

// Returns each rank's elements of `num_heads` heads of head_dim elements. REQUIRES: world_size divides num_heads.
inline std::vector<Shard> ShardsOfHeads(int64_t num_heads, int64_t head_dim, int world_size) {
  return ShardsOfRanks(world_size, [&](int rank) {
    const Shard heads = ShardOf(num_heads, rank, world_size);
    return Shard{heads.begin * head_dim, heads.count * head_dim};
  });
}

}  // namespace vllm
