#include "engine/model_loader/calibration/layer_moments.h"

#include <algorithm>

namespace vllm {

namespace {

using kernels::kPanelRows;
using Block = LayerMoments::Block;

constexpr int64_t kBlock = LayerMoments::kBlockColumns;
// A task adds the products of this many columns i.
constexpr int64_t kColumnsPerTask = 32;
static_assert(kBlock % kColumnsPerTask == 0 && kColumnsPerTask % kPanelRows == 0);
// The products of this many tokens are added up before they are added to the sums.
constexpr size_t kTokensPerPass = 256;

// The columns of some tokens, in the form that `linear` reads weights in: [panels, num_tokens, kPanelRows].
struct PackedTokens {
  std::vector<float> values;
  int64_t num_tokens = 0;

  void Reset(int64_t num_panels, int64_t tokens) {
    num_tokens = tokens;
    values.assign(static_cast<size_t>(num_panels * kPanelRows * tokens), 0.0f);
  }
  float* Panel(int64_t panel) { return values.data() + panel * kPanelRows * num_tokens; }
  // Columns [first, first + count) as the rows of a matrix. REQUIRES: first is a multiple of kPanelRows.
  kernels::PackedMatrixView View(int64_t first, int64_t count) const {
    return {values.data() + first * num_tokens, kernels::DType::kFloat32, count, num_tokens};
  }
  // Columns [first, first + count) as rows, [count, num_tokens].
  std::vector<float> Rows(int64_t first, int64_t count) const {
    std::vector<float> rows(static_cast<size_t>(count * num_tokens));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = first + i;
      const float* from = values.data() + column / kPanelRows * kPanelRows * num_tokens + column % kPanelRows;
      for (int64_t token = 0; token < num_tokens; ++token) {
        rows[static_cast<size_t>(i * num_tokens + token)] = from[token * kPanelRows];
      }
    }
    return rows;
  }
};

// Adds to `sums`, [block.num_columns, block.num_columns], the products of columns [first, first + count) of `left` with
// the columns from `begin` on of `right`. Columns are counted within the block; begin is a multiple of kPanelRows.
void AddProducts(const kernels::Kernels& kernels, const PackedTokens& left, const PackedTokens& right,
                 const Block& block, int64_t first, int64_t count, int64_t begin, float* sums) {
  const int64_t size = block.num_columns;
  const std::vector<float> rows = left.Rows(block.first + first, count);
  std::vector<float> products(static_cast<size_t>(count * size));
  const kernels::PackedMatrixView columns = right.View(block.first, size);
  kernels.linear(rows.data(), left.num_tokens, count, columns, nullptr, products.data(), size, begin / kPanelRows,
                 columns.num_panels());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = begin; j < size; ++j) sums[(first + i) * size + j] += products[static_cast<size_t>(i * size + j)];
  }
}

}  // namespace

LayerMoments MeasureMoments(const kernels::Kernels& kernels, const float* x, int64_t x_stride, int64_t num_columns,
                            std::span<const TokenRows> tokens, const ForEach& for_each) {
  LayerMoments moments;
  for (int64_t first = 0; first < num_columns; first += kBlock) {
    const int64_t size = std::min(kBlock, num_columns - first);
    const std::vector<float> zeros(static_cast<size_t>(size * size));
    moments.blocks.push_back({first, size, zeros, zeros});
  }
  const int64_t num_panels = (num_columns + kPanelRows - 1) / kPanelRows;
  PackedTokens quantized, differences;
  for (size_t begin = 0; begin < tokens.size(); begin += kTokensPerPass) {
    const std::span<const TokenRows> pass = tokens.subspan(begin, std::min(kTokensPerPass, tokens.size() - begin));
    quantized.Reset(num_panels, static_cast<int64_t>(pass.size()));
    differences.Reset(num_panels, static_cast<int64_t>(pass.size()));
    for_each(num_panels, [&](int64_t panel) {
      const int64_t first = panel * kPanelRows, count = std::min(kPanelRows, num_columns - first);
      float *z = quantized.Panel(panel), *difference = differences.Panel(panel);
      for (const TokenRows& token : pass) {
        const float *from = x + token.original * x_stride + first, *from_z = x + token.quantized * x_stride + first;
        for (int64_t i = 0; i < count; ++i) {
          z[i] = from_z[i];
          difference[i] = from[i] - from_z[i];
        }
        z += kPanelRows;
        difference += kPanelRows;
      }
    });
    for_each((num_columns + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task) {
      Block& block = moments.blocks[static_cast<size_t>(task * kColumnsPerTask / kBlock)];
      const int64_t first = task * kColumnsPerTask - block.first;
      const int64_t count = std::min(kColumnsPerTask, block.num_columns - first);
      AddProducts(kernels, quantized, quantized, block, first, count, first, block.products.data());
      AddProducts(kernels, differences, quantized, block, first, count, 0, block.differences.data());
    });
  }
  return moments;
}

}  // namespace vllm
