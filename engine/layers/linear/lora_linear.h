// LoRALinear: what the LoRA adapters add to the output of one linear layer on one rank. Each row of a step uses one
// adapter or none. The rows of an adapter are gathered and multiplied together, in float32. A row's result does not
// depend on the other rows or their adapters: each product sums in the order of the linear kernels. Owned by a layer.
// Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/load_context.h"
#include "engine/lora/lora_modules.h"

namespace vllm {

class LoRALinear {
 public:
  // No adapter changes the layer.
  LoRALinear() = default;
  // Takes the layer's modules from load.lora, which may be null. `slices` and `columns` are those of the LinearWeight.
  // base_bias: [rows of the slices], or empty; adapters that store biases replace it. With `adds_bias` false, biases
  // are left to another rank. Throws ModelError if a module does not fit the layer.
  LoRALinear(const LoadContext& load, const std::vector<OutputSlice>& slices, int64_t in_features, Shard columns,
             std::span<const float> base_bias, bool adds_bias);

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
    int64_t first_rank = 0;         // the module's rows in `a`
    std::optional<LinearMatrix> b;  // [num_outputs, rank of the module]; none: only a bias
    std::vector<float> bias;        // [num_outputs], added to the output; empty: none
  };
  struct Adapter {
    int64_t rank = 0;               // the sum over its modules
    std::optional<LinearMatrix> a;  // [rank, columns.count]
    std::vector<float> scales;      // [rank]
    std::vector<Block> blocks;
  };
  // The A matrices of the modules, stacked.
  struct Shrink;

  void AddBlock(const LoadContext& load, const LoRAModule& module, std::span<const OutputSlice> slices,
                std::span<const float> base_bias, bool adds_bias, Block block, Adapter& adapter) const;
  void AddRows(const StepContext& step, const Adapter& adapter, std::span<const int32_t> rows, const float* x,
               int64_t x_stride, float* y, int64_t y_stride) const;

  int64_t num_inputs_ = 0, num_outputs_ = 0;
  std::vector<std::unique_ptr<const Adapter>> adapters_;  // by slot; null: does not change the layer; empty: none does
};

}  // namespace vllm
