#include "engine/layers/column_gather.h"

#include <cstring>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

void CopyFloats(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace

void ReserveGather(const StepContext& step, int64_t num_rows, int64_t num_columns) {
  if (step.world_size() == 1) return;
  kernels::AlignedBuffer& buffer = step.workspace->gathered_x;
  const size_t bytes = static_cast<size_t>(num_rows * num_columns) * sizeof(float);
  if (buffer.size_bytes() < bytes) buffer = kernels::AlignedBuffer(bytes);
}

GatheredRows GatherColumns(const StepContext& step, std::span<const PeerBuffers> peers, std::span<const Shard> columns,
                           int64_t first_row, int64_t num_rows) {
  if (peers.size() == 1) return {peers[0].in + first_row * peers[0].in_stride, peers[0].in_stride};
  const int64_t total = columns.back().begin + columns.back().count;
  ReserveGather(step, num_rows, total);
  float* const gathered = step.workspace->gathered_x.as<float>();
  ForEachRow(step, num_rows, total,
             [&](int64_t row) { GatherRows(peers, columns, first_row + row, 1, gathered + row * total); });
  return {gathered, total};
}

void GatherRows(std::span<const PeerBuffers> peers, std::span<const Shard> columns, int64_t first_row, int64_t num_rows,
                float* out) {
  const int64_t total = columns.back().begin + columns.back().count;
  for (int64_t row = 0; row < num_rows; ++row) {
    for (size_t rank = 0; rank < peers.size(); ++rank) {
      CopyFloats(peers[rank].in + (first_row + row) * peers[rank].in_stride, columns[rank].count,
                 out + row * total + columns[rank].begin);
    }
  }
}

void SendColumns(const StepContext& step, std::span<const PeerBuffers> peers, std::span<const Shard> columns,
                 int64_t num_rows, int64_t stride) {
  if (peers.size() == 1) return;
  int64_t num_columns = 0;
  for (const Shard& shard : columns) num_columns += shard.count;
  const auto own_rank = static_cast<size_t>(step.rank());
  const float* const mine = peers[own_rank].out;
  ForEachRow(step, num_rows, num_columns * (step.world_size() - 1), [&](int64_t row) {
    for (size_t rank = 0; rank < peers.size(); ++rank) {
      if (rank == own_rank) continue;
      for (const Shard& shard : columns) {
        const int64_t begin = row * stride + shard.begin;
        CopyFloats(mine + begin, shard.count, peers[rank].out + begin);
      }
    }
  });
}

void AllGather(const StepContext& step, std::span<const Shard> columns, int64_t num_rows, int64_t stride, float* data) {
  if (step.world_size() == 1) return;
  const std::span<const PeerBuffers> peers = step.communicator->Exchange({.out = data});
  SendColumns(step, peers, columns, num_rows, stride);
  step.communicator->Barrier();
}

}  // namespace vllm
