#include "engine/layers/linear/gathered_linear.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/layers/column_gather.h"
#include "engine/layers/linear/linear_matrix.h"

namespace vllm {

namespace {

template <typename T>
void Copy(const T* from, int64_t count, T* to) {
  if (from != nullptr) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
}

// Copies tiles. Both views have the same rows and format.
void CopyTiles(const kernels::PackedActivationsView& from, const kernels::PackedActivationsView& to) {
  Copy(from.units, from.num_rows * from.num_units, to.units);
  Copy(from.scales, from.num_rows * from.num_scales(), to.scales);
  Copy(from.offsets, from.num_rows * from.num_offsets(), to.offsets);
  Copy(from.sums, from.num_rows * from.num_offsets(), to.sums);
}

}  // namespace

GatheredLinear::GatheredLinear(const LoadContext& load, const ModelConfig& model, const std::string& name,
                               int64_t out_features, std::vector<Shard> in_columns, bool has_bias)
    : step_(load.step),
      out_features_(out_features),
      in_columns_(std::move(in_columns)),
      out_columns_(ShardOfRows(out_features, load.step.rank(), load.step.world_size())),
      own_(load, model, in_features(), SplitMatrix(load.step, name, out_features), has_bias) {}

void GatheredLinear::Reserve(int64_t max_rows) const {
  ReserveGather(step_, std::max(max_rows, kernels::kAmxTileRows * step_.threads->num_threads()), in_features());
  own_.Reserve(max_rows);
}

void GatheredLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y,
                             const int32_t* lora_slots) const {
  float* const own_y = y + out_columns_.begin;
  if (step_.world_size() == 1) return own_.Forward(x, x_stride, num_rows, y, out_features_, lora_slots);
  // All ranks take the same way here: their matrices have the same format, and their rows the same adapters.
  const LinearMatrix* const matrix = own_.matrix();
  std::optional<kernels::PackedActivationsView> packed;
  if (matrix != nullptr && !own_.HasAdapters(lora_slots, num_rows)) {
    packed = matrix->PackedX(step_, num_rows, step_.workspace->packed_activations);
    // With fewer tiles than ranks, each rank packs all of x.
    if (packed && packed->num_tiles() < step_.world_size()) packed.reset();
  }
  const std::span<const PeerBuffers> peers =
      step_.communicator->Exchange({x, x_stride, y, packed.value_or(kernels::PackedActivationsView())});
  if (packed) {
    PackTogether(peers, *matrix);
    step_.communicator->Barrier();
    matrix->MultiplyPacked(step_, *packed, {own_.bias(), nullptr, 0, num_rows, own_y, out_features_});
  } else {
    const GatheredRows all = GatherColumns(step_, peers, in_columns_, 0, num_rows);
    own_.Forward(all.x, all.stride, num_rows, own_y, out_features_, lora_slots);
  }
  SendColumns(step_, peers, {&out_columns_, 1}, num_rows, out_features_);
  step_.communicator->Barrier();
}

std::optional<kernels::PackedActivationsView> GatheredLinear::PackedX(int64_t num_rows, const int32_t* lora_slots,
                                                                      kernels::PackedActivations& buffer) const {
  const LinearMatrix* const matrix = own_.matrix();
  if (step_.world_size() > 1 || matrix == nullptr || own_.HasAdapters(lora_slots, num_rows)) return std::nullopt;
  return matrix->PackedX(step_, num_rows, buffer);
}

void GatheredLinear::PackTogether(std::span<const PeerBuffers> peers, const LinearMatrix& matrix) const {
  const auto own_rank = static_cast<size_t>(step_.rank());
  const kernels::PackedActivationsView& own = peers[own_rank].packed;
  const Shard tiles = ShardOf(own.num_tiles(), step_.rank(), step_.world_size());
  ReserveGather(step_, kernels::kAmxTileRows * step_.threads->num_threads(), in_features());
  step_.threads->ParallelFor(tiles.count, [&](int64_t i, int thread) {
    const int64_t tile = tiles.begin + i;
    const int64_t begin = own.tile_begin(tile);
    const int64_t count = own.tile_begin(tile + 1) - begin;
    // A tile is gathered and packed while it is in the L2 cache.
    float* const x = step_.workspace->gathered_x.as<float>() + thread * kernels::kAmxTileRows * in_features();
    GatherRows(peers, in_columns_, begin, count, x);
    const kernels::PackedActivationsView to = own.Rows(begin, count);
    matrix.PackTile(step_, x, in_features(), to);
    for (size_t rank = 0; rank < peers.size(); ++rank) {
      if (rank != own_rank) CopyTiles(to, peers[rank].packed.Rows(begin, count));
    }
  });
}

}  // namespace vllm
