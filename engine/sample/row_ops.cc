#include "engine/sample/row_ops.h"

#include <algorithm>
#include <array>
#include <limits>

namespace vllm {
namespace {

// The row's last, partial block, filled up with entries that weigh nothing. Returns false when there is none.
bool PaddedTail(std::span<const float> row, std::array<float, kRowBlock>& tail) {
  size_t size = row.size() % kRowBlock;
  if (size == 0) return false;
  tail.fill(-std::numeric_limits<float>::infinity());
  std::copy(row.end() - static_cast<std::ptrdiff_t>(size), row.end(), tail.begin());
  return true;
}

}  // namespace

bool BlockMaxima(const RowKernels& kernels, std::span<const float> row, std::span<float> block_max) {
  size_t whole = row.size() / kRowBlock;
  bool good = kernels.block_maxima(row.data(), whole, block_max.data());
  std::array<float, kRowBlock> tail;
  if (PaddedTail(row, tail)) good &= kernels.block_maxima(tail.data(), 1, &block_max[whole]);
  return good;
}

void BlockWeightSums(const RowKernels& kernels, std::span<const float> row, float max, float inverse_temperature,
                     std::span<double> block_sum) {
  size_t whole = row.size() / kRowBlock;
  kernels.block_weight_sums(row.data(), whole, max, inverse_temperature, block_sum.data());
  std::array<float, kRowBlock> tail;
  if (PaddedTail(row, tail)) kernels.block_weight_sums(tail.data(), 1, max, inverse_temperature, &block_sum[whole]);
}

int64_t CountAtLeast(const RowKernels& kernels, std::span<const float> row, float value) {
  int64_t count = kernels.count_at_least(row.data(), row.size() / kRowBlock, value);
  // Not padded: -inf would count when value is -inf.
  for (size_t i = row.size() / kRowBlock * kRowBlock; i < row.size(); ++i) count += row[i] >= value ? 1 : 0;
  return count;
}

}  // namespace vllm
