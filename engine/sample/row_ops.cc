#include "engine/sample/row_ops.h"

#include <algorithm>
#include <array>
#include <limits>

namespace vllm {
namespace {

// Copies the row's partial last block to `tail` and pads it with -inf, which has weight 0. Returns false if the row has
// no partial block.
bool PaddedTail(std::span<const float> row, std::array<float, kernels::kRowBlock>& tail) {
  size_t size = row.size() % kernels::kRowBlock;
  if (size == 0) return false;
  tail.fill(-std::numeric_limits<float>::infinity());
  std::copy(row.end() - static_cast<std::ptrdiff_t>(size), row.end(), tail.begin());
  return true;
}

}  // namespace

bool BlockMaxima(const kernels::RowKernels& kernels, std::span<const float> row, std::span<float> block_max) {
  size_t num_full = row.size() / kernels::kRowBlock;
  bool valid = kernels.block_maxima(row.data(), num_full, block_max.data());
  std::array<float, kernels::kRowBlock> tail;
  if (PaddedTail(row, tail)) valid &= kernels.block_maxima(tail.data(), 1, &block_max[num_full]);
  return valid;
}

void BlockWeightSums(const kernels::RowKernels& kernels, std::span<const float> row, float max,
                     float inverse_temperature, std::span<double> block_sum) {
  size_t num_full = row.size() / kernels::kRowBlock;
  kernels.block_weight_sums(row.data(), num_full, max, inverse_temperature, block_sum.data());
  std::array<float, kernels::kRowBlock> tail;
  if (PaddedTail(row, tail)) kernels.block_weight_sums(tail.data(), 1, max, inverse_temperature, &block_sum[num_full]);
}

int64_t CountAtLeast(const kernels::RowKernels& kernels, std::span<const float> row, float value) {
  int64_t count = kernels.count_at_least(row.data(), row.size() / kernels::kRowBlock, value);
  // The partial block is not padded with -inf here, because the padding would be counted if `value` is -inf.
  for (size_t i = row.size() / kernels::kRowBlock * kernels::kRowBlock; i < row.size(); ++i)
    count += row[i] >= value ? 1 : 0;
  return count;
}

}  // namespace vllm
