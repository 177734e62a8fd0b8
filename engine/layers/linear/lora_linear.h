// LoRALinear: what the LoRA adapters add to the output of one linear layer on one rank. Each row of a step uses one
// adapter or none. The rows of an adapter are gathered and multiplied together. A and B are in the data type of the
// model; inputs, products and sums are float32. A row's result does not depend on the other rows or their adapters,
// because each product sums in the order of the linear kernels. Owned by a layer. Built at load, then used by the
// rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/load_context.h"
#include "engine/lora/lora_modules.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

class LoRALinear {
 public:
  // No adapter changes the layer.
  LoRALinear() = default;
  struct Layer {
    const std::vector<OutputSlice>& slices;  // this and the next two as in the constructor of the LinearWeight
    int64_t in_features = 0;
    Shard columns;
    const LinearWeight* weight = nullptr;  // null: the layer cannot have DoRA
    std::span<const float> bias = {};      // [rows of the slices], or empty; adapters that store biases replace it
    bool adds_bias = true;                 // false: another rank adds the biases
    bool y_has_bias = true;                // whether y already contains the bias when Add is called
  };
  // Takes the layer's modules from load.lora, which may be null. With DoRA and columns that are split over the ranks,
  // all ranks call this together. Throws ModelError if a module does not fit the layer.
  LoRALinear(const LoadContext& load, const Layer& layer);

  // Reserves the rank's scratch for Add.
  void Reserve(const StepContext& step, int64_t max_rows) const;
  // Adds to each row r of y [num_rows, rows of the slices] the part of adapter slots[r], nothing if slots[r] is below
  // 0. x: [num_rows, columns.count]. `slots` may be null: no row has an adapter. Rows are x_stride and y_stride floats
  // apart.
  void Add(const StepContext& step, const int32_t* slots, const float* x, int64_t x_stride, int64_t num_rows, float* y,
           int64_t y_stride) const;

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
    std::vector<float> base_bias;  // [num_outputs], with DoRA: the bias that y contains; empty: none
  };
  struct Adapter {
    int64_t rank = 0;                        // the sum over its modules
    std::optional<kernels::PackedMatrix> a;  // [rank, columns.count]
    std::vector<float> scales;               // [rank]
    std::vector<Block> blocks;
  };
  // The A matrices of the modules, stacked.
  struct Shrink;

  static void AddBlock(const LoadContext& load, const Layer& layer, const LoRAModule& module,
                       std::span<const OutputSlice> slices, Block block, Adapter& adapter);
  // The rows of one round of Add, and its output.
  struct Round {
    std::span<const int32_t> rows;  // rows of x and y, at most kRowsAtOnce
    const float* x = nullptr;
    int64_t x_stride = 0;
    float* y = nullptr;
    int64_t y_stride = 0;
  };
  // Adds to the rows of the pieces in the workspace.
  void AddRound(const StepContext& step, const Round& round) const;
  // Computes A x of a piece.
  void ShrinkPiece(const StepContext& step, const Round& round, const LoRAWorkspace::Piece& piece) const;
  // Computes B (A x) of a run and adds it to the output.
  void Expand(const StepContext& step, const Round& round, const LoRAWorkspace::Run& run) const;
  // Adds outputs [begin, end) of a block to one row of the layer's output. delta, y: [num_outputs].
  static void AddDelta(const StepContext& step, const Block& block, int64_t begin, int64_t end, const float* delta,
                       float* y);

  int64_t num_inputs_ = 0, num_outputs_ = 0, max_rank_ = 0;
  std::vector<std::unique_ptr<const Adapter>> adapters_;  // by slot; null: does not change the layer; empty: none does
};

}  // namespace vllm
