// LoRALinear: what the LoRA adapters add to the output of one linear layer on one rank. Each row of a step uses one
// adapter or none. The rows of an adapter are gathered and multiplied together. A and B are in the data type of the
// model; inputs, products and sums are float32. A row's result does not depend on the other rows or their adapters,
// because each product sums in the order of the linear kernels. Owned by a layer; used on the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/load_context.h"
#include "engine/lora/lora_layers.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

class LoRALinear final : public LoRALayer {
 public:
  struct Layer {
    std::vector<OutputSlice> slices;  // this and the next as in the constructor of the LinearWeight
    int64_t in_features = 0;
    const LinearWeight* weight = nullptr;  // outlives this object; null: the layer cannot have DoRA
    std::span<const float> bias = {};      // [rows of the slices], or empty; adapters that store biases replace it
  };
  // Registers itself with load.lora, which may be null.
  LoRALinear(const LoadContext& load, Layer layer);
  LoRALinear(const LoRALinear&) = delete;
  LoRALinear& operator=(const LoRALinear&) = delete;

  void Take(size_t slot, LoRAModules& modules) override;
  void Load(size_t slot) override;
  void Unload(size_t slot) override;

  // Reserves the rank's scratch for Add.
  void Reserve(int64_t max_rows) const;
  // Returns true if an adapter that changes this layer applies to any of the rows. `slots` is as in Add.
  bool HasAdapters(const int32_t* slots, int64_t num_rows) const;
  // Adds to each row r of y [num_rows, rows of the slices] the part of adapter slots[r], nothing if slots[r] is below
  // 0. x: [num_rows, in_features]. `slots` may be null: no row has an adapter. Rows are x_stride and y_stride floats
  // apart.
  void Add(const int32_t* slots, const float* x, int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride) const;

 private:
  // Adjacent outputs of the layer that one module of the adapter changes.
  struct Block {
    int64_t first_output = 0;
    int64_t num_outputs = 0;
    int64_t first_rank = 0;                  // the module's rows in `a`
    std::optional<kernels::PackedMatrix> b;  // [num_outputs, rank of the module]; none: only a bias
    std::vector<float> b_bias;               // [num_outputs], added to b's output; empty: none
    std::vector<float> bias;                 // [num_outputs], added to the layer's output; empty: none
    std::vector<float> magnitude;  // [num_outputs], DoRA's factors of the outputs without the bias; empty: no DoRA
    std::vector<float> base_bias;  // [num_outputs], with DoRA: the layer's bias; empty: none
  };
  struct Adapter {
    int64_t rank = 0;                        // the sum over its modules
    std::optional<kernels::PackedMatrix> a;  // [rank, in_features]
    std::vector<float> scales;               // [rank]
    std::vector<Block> blocks;
  };
  // What an adapter changes in adjacent slices of one matrix, such as the heads of a fused QKV matrix.
  struct TakenModule {
    const LoRAModule* module = nullptr;
    size_t first_slice = 0, num_slices = 0;
    int64_t first_output = 0, num_outputs = 0;
  };
  // The A matrices of the modules, stacked.
  struct Shrink;

  void AddBlock(const TakenModule& taken, int64_t first_rank, Adapter& adapter) const;
  std::vector<float> RowNorms(const LoRAModule& module, int64_t first_output, const std::vector<int64_t>& rows) const;
  // The rows of one round of Add, and its output.
  struct Round {
    std::span<const int32_t> rows;  // rows of x and y, at most kRowsAtOnce
    const float* x = nullptr;
    int64_t x_stride = 0;
    float* y = nullptr;
    int64_t y_stride = 0;
  };
  // Adds to the rows of the pieces in the workspace.
  void AddRound(const Round& round) const;
  // Computes A x of a piece.
  void ShrinkPiece(const Round& round, const LoRAWorkspace::Piece& piece) const;
  // Computes B (A x) of a run and adds it to the output.
  void Expand(const Round& round, const LoRAWorkspace::Run& run) const;
  // Adds outputs [begin, end) of a block to one row of the layer's output. delta, y: [num_outputs].
  void AddDelta(const Block& block, int64_t begin, int64_t end, const float* delta, float* y) const;

  const StepContext& step_;
  const kernels::DType dtype_;
  const Layer layer_;
  int64_t num_outputs_ = 0, max_rank_ = 0;
  mutable int64_t max_rows_ = 0;                          // of the last Reserve
  std::vector<std::vector<TakenModule>> taken_;           // by slot; empty: the adapter does not change the layer
  std::vector<std::unique_ptr<const Adapter>> adapters_;  // by slot; null: is not loaded or does not change the layer
};

}  // namespace vllm
