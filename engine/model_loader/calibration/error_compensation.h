// ErrorCompensation: quantizes the rows of a matrix so that the outputs of its layer on a calibration text change as
// little as possible. The layer gets the inputs z that the quantized layers before it give, and its outputs are
// compared with those that the unquantized layer gives for the inputs x of the unquantized model. First, each row is
// replaced by the unquantized one that comes closest to that. Then one column after the other is rounded, and the
// columns that are not rounded yet change so that they make up for the error so far. This is GPTAQ (Li et al. 2025,
// arXiv 2504.02692), or GPTQ (Frantar et al. 2022, arXiv 2210.17323) where z and x are equal. At last, each scale and
// each code is fitted again, given all others (coordinate descent). All of this stays within the blocks of
// LayerMoments. Immutable after construction; any thread may quantize rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model_loader/calibration/layer_moments.h"

namespace vllm {

class ErrorCompensation {
 public:
  // Rows that are quantized together. A row's result does not depend on the others.
  static constexpr int64_t kRows = 16;

  // Borrows `kernels`. Factors the moments of each block on the threads of `for_each`, in O(columns *
  // LayerMoments::kBlockColumns^2).
  ErrorCompensation(const kernels::Kernels& kernels, const LayerMoments& moments, const ForEach& for_each);

  // Returns the number of scales of a row, one per kGroupColumns columns.
  int64_t num_scales() const;
  // Quantizes kRows rows to IQ4_NL. values: [count, kRows], one row of the matrix per column. Writes codes, [kRows,
  // count], and scales, [kRows, num_scales()], which are values of float16. A row with a value that is not finite gets
  // unspecified codes.
  void QuantizeRows(const float* values, uint8_t* codes, float* scales) const;

 private:
  // Columns with one scale, at adjacent positions.
  struct Group {
    int64_t first = 0;  // position in the block
    int64_t count = 0;
    int64_t scale_index = 0;
  };
  // Columns that compensate each other: those of a block of LayerMoments. Position p of the block is column columns[p]
  // of the matrix. The positions are in the order of rounding: the groups with the largest
  // moments first, and so within each group.
  struct Block {
    std::vector<int64_t> columns;
    std::vector<Group> groups;
    // [positions, positions], the moments plus the damping.
    std::vector<float> moments;
    // [positions, positions], lower triangular, V with V V^T = moments^-1. The error e of position j is made up for
    // best if position k > j changes by -e V[k][j] / V[j][j].
    std::vector<float> factor;
    // [positions] 1 / V[j][j]^2: how much an error in position j matters if the positions after it make up for it.
    std::vector<float> importance;
    // [positions, positions], what is added to the weights w of a row before they are rounded: position j changes by
    // the sum over k of correction[j][k] w[k]. Empty: nothing.
    std::vector<float> correction;
  };
  struct Panel;

  void Factor(const LayerMoments::Block& moments, Block& block, const ForEach& for_each) const;
  // REQUIRES: Factor was called.
  void Correct(const LayerMoments::Block& moments, Block& block, const ForEach& for_each) const;
  void Round(const Block& block, Panel& panel) const;
  void Refine(const Block& block, Panel& panel) const;

  const kernels::Kernels& kernels_;
  int64_t num_columns_;
  std::vector<Block> blocks_;
};

}  // namespace vllm
