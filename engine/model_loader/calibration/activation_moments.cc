#include "engine/model_loader/calibration/activation_moments.h"

#include <algorithm>

namespace vllm {

namespace {

using kernels::kPanelRows;

constexpr int64_t kBlock = LayerMoments::kBlockColumns;
// A task adds the products of this many columns i with all columns j >= i of their block.
constexpr int64_t kColumnsPerTask = 32;
static_assert(kBlock % kColumnsPerTask == 0 && kColumnsPerTask % kPanelRows == 0);

// The columns of some tokens' inputs, in the form that `linear` reads weights in: [panels, num_tokens, kPanelRows].
struct PackedTokens {
  std::vector<float> values;
  int64_t num_tokens = 0;
  int64_t num_columns = 0;

  // Columns [first, first + count) as the rows of a matrix. REQUIRES: first is a multiple of kPanelRows.
  kernels::PackedMatrixView View(int64_t first, int64_t count) const {
    return {values.data() + first * num_tokens, kernels::DType::kFloat32, count, num_tokens};
  }
  void PackPanel(const float* x, int64_t x_stride, int64_t panel) {
    const int64_t first = panel * kPanelRows, count = std::min(kPanelRows, num_columns - first);
    float* out = values.data() + first * num_tokens;
    for (int64_t token = 0; token < num_tokens; ++token, out += kPanelRows) {
      std::copy_n(x + token * x_stride + first, count, out);
    }
  }
};

// Adds to sums, [size, size], the products of columns [first, first + kColumnsPerTask) of the block that begins at
// column block_begin with the columns from `first` on.
void AddProducts(const kernels::Kernels& kernels, const PackedTokens& tokens, int64_t block_begin, int64_t first,
                 int64_t size, float* sums) {
  const int64_t count = std::min(kColumnsPerTask, size - first), num_tokens = tokens.num_tokens;
  std::vector<float> columns(static_cast<size_t>(count * num_tokens)), products(static_cast<size_t>(count * size));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t column = block_begin + first + i;
    const float* from = tokens.values.data() + column / kPanelRows * kPanelRows * num_tokens + column % kPanelRows;
    for (int64_t token = 0; token < num_tokens; ++token) {
      columns[static_cast<size_t>(i * num_tokens + token)] = from[token * kPanelRows];
    }
  }
  const kernels::PackedMatrixView block = tokens.View(block_begin, size);
  kernels.linear(columns.data(), num_tokens, count, block, nullptr, products.data(), size, first / kPanelRows,
                 block.num_panels());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = first; j < size; ++j) sums[(first + i) * size + j] += products[static_cast<size_t>(i * size + j)];
  }
}

}  // namespace

void ActivationMoments::Add(const kernels::Kernels& kernels, const std::string& layer, const float* x, int64_t x_stride,
                            int64_t num_rows, int64_t num_columns, const ForEach& for_each) {
  LayerMoments& moments = layers_[layer];
  if (moments.blocks.empty()) {
    moments.num_columns = num_columns;
    moments.blocks.resize(static_cast<size_t>((num_columns + kBlock - 1) / kBlock));
    for (size_t b = 0; b < moments.blocks.size(); ++b) {
      moments.blocks[b].resize(static_cast<size_t>(moments.BlockSize(b) * moments.BlockSize(b)));
    }
  }
  const int64_t num_panels = (num_columns + kPanelRows - 1) / kPanelRows;
  PackedTokens tokens{std::vector<float>(static_cast<size_t>(num_panels * kPanelRows * num_rows)), num_rows,
                      num_columns};
  for_each(num_panels, [&](int64_t panel) { tokens.PackPanel(x, x_stride, panel); });
  for_each((num_columns + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task) {
    const int64_t first = task * kColumnsPerTask;
    const auto block = static_cast<size_t>(first / kBlock);
    AddProducts(kernels, tokens, first / kBlock * kBlock, first % kBlock, moments.BlockSize(block),
                moments.blocks[block].data());
  });
}

const LayerMoments* ActivationMoments::Find(const std::string& layer) const {
  const auto found = layers_.find(layer);
  return found == layers_.end() ? nullptr : &found->second;
}

}  // namespace vllm
