// ActivationMoments: sums of products of the inputs of each linear layer, collected while the unquantized model reads a
// calibration text. Quantization uses them to weigh the errors of weights. Filled on the thread of the one rank that
// reads the text; after that, immutable, and any thread may read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/kernels.h"

namespace vllm {

// The sums of one layer. The columns are divided into blocks of kBlockColumns, the last of which may be shorter, and
// only products within a block are kept: all of them would take more memory than the weights of a large model.
struct LayerMoments {
  static constexpr int64_t kBlockColumns = 2048;

  int64_t num_columns = 0;
  // For each block, the sum over the tokens of x[i] x[j], [columns of the block, columns of the block]. Elements with
  // i > j are unspecified.
  std::vector<std::vector<float>> blocks;

  // Returns the sum for columns i <= j, or 0 if they are in different blocks.
  float At(int64_t i, int64_t j) const {
    const auto block = static_cast<size_t>(i / kBlockColumns);
    if (j / kBlockColumns != i / kBlockColumns) return 0.0f;
    return blocks[block][static_cast<size_t>(i % kBlockColumns * BlockSize(block) + j % kBlockColumns)];
  }
  int64_t BlockSize(size_t block) const {
    const int64_t rest = num_columns - static_cast<int64_t>(block) * kBlockColumns;
    return rest < kBlockColumns ? rest : kBlockColumns;
  }
};

class ActivationMoments {
 public:
  // Adds the rows of x, [num_rows, num_columns], rows x_stride floats apart, to the sums of `layer`. The result does
  // not depend on `for_each`. Throws std::bad_alloc.
  void Add(const kernels::Kernels& kernels, const std::string& layer, const float* x, int64_t x_stride,
           int64_t num_rows, int64_t num_columns, const ForEach& for_each);
  // Returns null if the layer had no inputs.
  const LayerMoments* Find(const std::string& layer) const;

 private:
  std::map<std::string, LayerMoments> layers_;
};

}  // namespace vllm
