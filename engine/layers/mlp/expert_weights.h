// ExpertWeights: the tensors of one expert, under the names and in the shapes of MlpSpec, for checkpoints that store
// all experts of a layer in one tensor. Other tensors come from the source that it wraps. Lives only while the expert
// is built; borrows the source. Immutable; any thread may read.
//
// ExpertLayout::kStacked, with E experts, hidden size H and intermediate size I:
//
// clang-format off
//   <stacked_gate_up>.weight      [E, 2 I, H]          float  the rows of gate, then those of up
//   <stacked_down>.weight         [E, H, I]            float
// clang-format on
//
// ExpertLayout::kTransposed (Qwen3-VL-MoE); the columns of gate are before those of up:
//
// clang-format off
//   <experts>gate_up_proj         [E, H, 2 I]          float
//   <experts>down_proj            [E, I, H]            float
// clang-format on
//
// ExpertLayout::kGptOss, with E experts, hidden size H and intermediate size I. The rows or columns of gate and up
// alternate; gate is first.
//
// clang-format off
//   <experts>gate_up_proj         [E, H, 2 I]          float
//   <experts>down_proj            [E, I, H]            float
// or, quantized (MXFP4),
//   <experts>gate_up_proj_blocks  [E, 2 I, H / 32, 16] U8    each byte has two 4-bit codes, the low one first
//   <experts>gate_up_proj_scales  [E, 2 I, H / 32]     U8    the exponents of the blocks of 32 columns, plus 127
//   <experts>down_proj_blocks     [E, H, I / 32, 16]   U8
//   <experts>down_proj_scales     [E, H, I / 32]       U8
// and
//   <experts>gate_up_proj_bias    [E, 2 I]             float
//   <experts>down_proj_bias       [E, H]               float
// clang-format on
//
// ExpertLayout::kMegaBlocks (nomic-embed-text-v2-moe), without gates; the matrices of all experts are concatenated:
//
// clang-format off
//   <experts>mlp.w1               [E I, H]             float  the rows of up
//   <experts>mlp.w2               [E I, H]             float  the columns of down
// clang-format on
//
// <experts> is "model.layers.0.mlp.experts." in layer 0.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/layers/mlp/sparse_moe.h"

namespace vllm {

class ExpertWeights : public WeightSource {
 public:
  // `prefix` is the block's. Converts the expert's matrices on the rank's threads. Throws ModelError naming the tensor
  // if one is missing or has the wrong type or shape.
  ExpertWeights(const LoadContext& load, const std::string& prefix, const MoeSpec& spec, int64_t hidden_size,
                int64_t expert);

  bool Contains(std::string_view name) const override { return tensors_.contains(name) || base_.Contains(name); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override;
  void DropPages() const override { base_.DropPages(); }
  bool DecidesBiases() const override { return base_.DecidesBiases(); }
  std::vector<std::string> Names() const override { return base_.Names(); }
  std::vector<const MappedFile*> Files() const override { return base_.Files(); }
  int64_t TotalBytes() const override { return base_.TotalBytes(); }

 private:
  // Adds `name` with the bytes of every step-th row of a [rows, columns] matrix of the expert, from row `first` on.
  // `row(i, out)` writes row i.
  template <typename F>
  void AddRows(const LoadContext& load, const std::string& name, kernels::WeightType type, int64_t num_rows,
               int64_t num_columns, F&& row);
  // Adds `num_rows` columns of the matrix as rows: columns first, first + step and so on.
  void AddTransposed(const LoadContext& load, const std::string& name, const TensorView& matrix, int64_t first,
                     int64_t step, int64_t num_rows);
  void AddMxfp4(const LoadContext& load, const std::string& name, const TensorView& blocks, const TensorView& scales,
                int64_t first, int64_t step);
  void AddElements(const std::string& name, const TensorView& vector, int64_t first, int64_t step);
  // Adds rows [first, first + num_rows) of a matrix without copying them.
  void AddView(const std::string& name, TensorView matrix, int64_t first, int64_t num_rows);
  void AddStacked(const std::string& prefix, const MoeSpec& spec, int64_t hidden_size, int64_t expert);
  // Adds the matrices of an expert whose tensors are transposed. `up` is the first column of up_proj, and `step` the
  // distance of the columns of one matrix.
  void AddTransposedExpert(const LoadContext& load, const std::string& experts, const MoeSpec& spec,
                           int64_t hidden_size, int64_t expert, int64_t up, int64_t step);
  void AddGptOss(const LoadContext& load, const std::string& experts, const MoeSpec& spec, int64_t hidden_size,
                 int64_t expert);
  void AddMegaBlocks(const LoadContext& load, const std::string& experts, const MoeSpec& spec, int64_t hidden_size,
                     int64_t expert);

  const WeightSource& base_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::vector<std::vector<std::byte>> owned_;  // the bytes of tensors_
};

}  // namespace vllm
