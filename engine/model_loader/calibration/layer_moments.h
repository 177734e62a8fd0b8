// LayerMoments: sums of products of the inputs that a linear layer gets while a model reads a calibration text twice:
// unquantized, and with the layers before this one already quantized. ErrorCompensation weighs the errors of weights
// with them. Immutable; any thread may read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/kernels.h"

namespace vllm {

// The same token in both readings.
struct TokenRows {
  int64_t original = 0;   // row of the unquantized model
  int64_t quantized = 0;  // row of the model with quantized layers
};

struct LayerMoments {
  // The columns are divided into blocks of this many, the last of which may be shorter, and only products within a
  // block are kept: all of them would take more memory and time than a wide layer is worth.
  static constexpr int64_t kBlockColumns = 2048;

  // The columns [first, first + num_columns) of the layer. x is the input in the unquantized model, z that in the
  // quantized one; the sums are over the tokens.
  struct Block {
    int64_t first = 0;
    int64_t num_columns = 0;
    std::vector<float> products;     // [num_columns, num_columns] z[i] z[j]; unspecified for i > j
    std::vector<float> differences;  // [num_columns, num_columns] (x[i] - z[i]) z[j]
  };

  std::vector<Block> blocks;
};

// Adds up the products of the rows of x, [rows, num_columns], rows x_stride floats apart. The result does not depend on
// `for_each`. Throws std::bad_alloc.
LayerMoments MeasureMoments(const kernels::Kernels& kernels, const float* x, int64_t x_stride, int64_t num_columns,
                            std::span<const TokenRows> tokens, const ForEach& for_each);

}  // namespace vllm
