// GatheredLinear: a linear layer whose input columns are spread over the ranks, and whose output is complete on all of
// them. It follows a ColumnParallelLinear, as RowParallelLinear does in vLLM. But here each rank has rows of the
// matrix: it gets the inputs of the other ranks, computes its outputs, and copies them to the other ranks. Each output
// is one sum over all inputs, so its bits do not depend on the number of ranks. Owned by the block that uses it. Each
// rank loads its own shard and calls Forward on its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/communicator.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/shard.h"

namespace vllm {

class GatheredLinear {
 public:
  // The inputs are in_columns[r] on rank r. See ColumnParallelLinear for `has_bias` and exceptions.
  GatheredLinear(const LoadContext& load, const ModelConfig& model, const std::string& name, int64_t out_features,
                 std::vector<Shard> in_columns, bool has_bias);

  void Reserve(int64_t max_rows) const;
  // x: [num_rows, the rank's columns], with rows x_stride floats apart; y: [num_rows, out_features], contiguous. See
  // ModelInput for lora_slots, [num_rows] or null. All ranks call it together.
  void Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y, const int32_t* lora_slots = nullptr) const;

  // For an only rank, Forward in two steps: PackedX returns memory of `buffer` in which the caller packs x with
  // PackTile, and ForwardPacked computes y. PackedX returns nullopt if the layer needs x itself.
  std::optional<kernels::PackedActivationsView> PackedX(int64_t num_rows, const int32_t* lora_slots,
                                                        kernels::PackedActivations& buffer) const;
  void PackTile(const float* x, int64_t x_stride, const kernels::PackedActivationsView& to) const {
    own_.matrix()->PackTile(step_, x, x_stride, to);
  }
  void ForwardPacked(const kernels::PackedActivationsView& x, float* y) const {
    own_.matrix()->MultiplyPacked(step_, x, {own_.bias(), nullptr, 0, x.num_rows, y, out_features_});
  }

  // The inputs of each rank, for callers of GatherColumns.
  const std::vector<Shard>& in_columns() const { return in_columns_; }
  // The outputs of this rank.
  const Shard& out_columns() const { return out_columns_; }
  // Computes only the outputs of this rank, y [num_rows, out_columns().count], from all inputs, x [num_rows,
  // in_features]. Rows are x_stride and y_stride floats apart.
  void ForwardOwn(const float* x, int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride,
                  const int32_t* lora_slots) const {
    own_.Forward(x, x_stride, num_rows, y, y_stride, lora_slots);
  }

 private:
  // Packs `packed` of all ranks: each rank packs some tiles and copies them to the others.
  void PackTogether(std::span<const PeerBuffers> peers, const LinearMatrix& matrix) const;
  int64_t in_features() const { return in_columns_.back().begin + in_columns_.back().count; }

  const StepContext& step_;
  int64_t out_features_;
  std::vector<Shard> in_columns_;
  Shard out_columns_;
  ColumnParallelLinear own_;
};

}  // namespace vllm
