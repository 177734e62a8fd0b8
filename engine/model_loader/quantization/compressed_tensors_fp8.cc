#include "engine/model_loader/quantization/compressed_tensors_fp8.h"

#include <algorithm>
#include <utility>

#include "engine/model_loader/quantization/tensor.h"

namespace vllm {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A grid of scales or zero points: one value for each pair of a block of block_rows outputs and a group of inputs.
struct Grid {
  TensorView view;
  int64_t block_rows = 1;
  int64_t num_groups = 1;

  const std::byte* At(int64_t row, int64_t group) const {
    return view.data.data() + (row / block_rows * num_groups + group) * BytesOf(view.type, 1);
  }
};

// Returns the grid `name`. Accepts the scheme's shape [blocks, groups] and, if there is one group, [out] or [out, 1]
// with one value per row. A single value in any shape applies to the whole matrix, regardless of the scheme.
Grid GetGrid(const WeightSource& weights, const std::string& name, const QuantizationScheme& scheme,
             const MatrixRows& rows) {
  const std::optional<std::vector<int64_t>> shape = weights.ShapeOf(name);
  Grid grid;
  grid.block_rows = std::min(scheme.block_rows, rows.out_features);
  grid.num_groups = NumGroups(rows.in_features, scheme.group_size);
  const int64_t num_blocks = CeilDiv(rows.out_features, grid.block_rows);
  const std::vector<int64_t> full = {num_blocks, grid.num_groups};
  const std::vector<int64_t> stored = shape.value_or(full);
  const bool is_single = std::all_of(stored.begin(), stored.end(), [](int64_t size) { return size == 1; });
  if (is_single) {
    grid.block_rows = rows.out_features;
    grid.num_groups = 1;
  }
  // Some checkpoints have one scale per row although the scheme says one per matrix.
  const bool is_per_row =
      stored == std::vector<int64_t>{rows.out_features} || stored == std::vector<int64_t>{rows.out_features, 1};
  if (is_per_row && grid.num_groups == 1 && !is_single) grid.block_rows = 1;
  grid.view = weights.Get(name, is_single || (is_per_row && grid.num_groups == 1) ? stored : full);
  return grid;
}

// Returns the size of a stored code in bits. A code that is not packed takes a byte, even if it fits in 4 bits.
int64_t CodeBits(const QuantizationScheme& scheme) { return scheme.packed ? scheme.bits : 8; }

void SetZeros(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
              const MatrixRows& rows, GroupSource& source) {
  const std::string tensor = name + ".weight_zero_point";
  const int32_t offset = 1 << (CodeBits(scheme) - 1);
  source.zero_point = offset;
  if (scheme.symmetric || scheme.is_float) return;
  const int64_t num_groups = NumGroups(rows.in_features, scheme.group_size);
  const bool is_per_matrix = scheme.block_rows >= rows.out_features && rows.out_features > 1;
  if (scheme.packed && !is_per_matrix) {
    const int64_t codes_per_word = 32 / scheme.bits;
    const TensorView zeros = GetTyped(weights, tensor, {CeilDiv(rows.out_features, codes_per_word), num_groups},
                                      kernels::WeightType::kInt32);
    const auto mask = static_cast<uint32_t>((1 << scheme.bits) - 1);
    source.zero = [=](int64_t n, int64_t g) {
      const uint32_t word = LoadWord(zeros.data.data() + (n / codes_per_word * num_groups + g) * 4);
      return static_cast<int32_t>((word >> (n % codes_per_word * scheme.bits)) & mask);
    };
    return;
  }
  const Grid grid = GetGrid(weights, tensor, scheme, rows);
  if (grid.view.type != kernels::WeightType::kInt8)
    RejectTensor(tensor, "must be I8 (" + std::string(InfoOf(grid.view.type).name) + ")");
  const bool is_grouped = grid.num_groups > 1;
  source.zero = [=](int64_t n, int64_t g) {
    return static_cast<int32_t>(static_cast<int8_t>(*grid.At(n, is_grouped ? g : 0))) + offset;
  };
}

void SetCodes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
              const MatrixRows& rows, GroupSource& source) {
  const int64_t columns = rows.in_features;
  if (!scheme.packed) {
    const kernels::WeightType type = scheme.is_float ? kernels::WeightType::kFloat8E4M3 : kernels::WeightType::kInt8;
    const TensorView view = GetTyped(weights, name + ".weight", {rows.out_features, rows.in_features}, type);
    // Adds 128 to signed codes to make them unsigned. SetZeros adds 128 to the zero points too.
    const uint8_t flip = scheme.is_float ? 0 : 0x80;
    source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
      for (int64_t i = 0; i < count; ++i) {
        const std::byte* from = view.Row(row + i);
        for (int64_t k = 0; k < columns; ++k) codes[i * columns + k] = static_cast<uint8_t>(from[k]) ^ flip;
      }
    };
    return;
  }
  const int64_t words = CeilDiv(rows.in_features * scheme.bits, 32);
  const TensorView view =
      GetTyped(weights, name + ".weight_packed", {rows.out_features, words}, kernels::WeightType::kInt32);
  const int64_t bits = scheme.bits;
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* from = view.Row(row + i);
      for (int64_t k = 0; k < columns; ++k) {
        const auto byte = static_cast<uint8_t>(from[bits == 8 ? k : k / 2]);
        codes[i * columns + k] = bits == 8 ? byte : static_cast<uint8_t>(k % 2 == 0 ? byte & 0x0f : byte >> 4);
      }
    }
  };
}

}  // namespace

GroupSource OpenRows(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                     const MatrixRows& rows) {
  GroupSource source;
  source.format = scheme.is_float         ? kernels::QuantFormat::kGroupFloat8
                  : CodeBits(scheme) == 4 ? kernels::QuantFormat::kGroupUInt4
                                          : kernels::QuantFormat::kGroupUInt8;
  const std::string inverse = name + ".weight_scale_inv";
  const std::string scale_name = weights.ShapeOf(inverse) ? inverse : name + ".weight_scale";
  const Grid scales = GetGrid(weights, scale_name, scheme, rows);
  source.scale_type = scales.view.dtype();
  source.has_scale_per_input_row = scheme.has_scale_per_token;
  const bool is_grouped = scales.num_groups > 1;
  source.scale = [=](int64_t n, int64_t g) { return scales.At(n, is_grouped ? g : 0); };
  const int64_t num_groups = NumGroups(rows.in_features, scheme.group_size);
  source.group_of_column = weights.ShapeOf(name + ".weight_g_idx")
                               ? ReadGroupIndex(weights, name + ".weight_g_idx", rows.in_features, num_groups)
                               : RunsOfGroups(rows.in_features, scheme.group_size);
  SetZeros(weights, scheme, name, rows, source);
  SetCodes(weights, scheme, name, rows, source);
  return source;
}

}  // namespace vllm
