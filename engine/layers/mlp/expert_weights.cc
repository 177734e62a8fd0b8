#include "engine/layers/mlp/expert_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "kernels/threading/check.h"

namespace vllm {

namespace {

constexpr int64_t kMxfp4Columns = 32;
constexpr int64_t kMxfp4Bytes = 16;

// Returns element `index` of the first dimension of a stacked tensor.
TensorView Element(const WeightSource& weights, const std::string& name, std::vector<int64_t> shape, int64_t index) {
  TensorView view = weights.Get(name, shape);
  const size_t bytes = view.data.size() / static_cast<size_t>(shape.front());
  shape.erase(shape.begin());
  view.data = view.data.subspan(static_cast<size_t>(index) * bytes, bytes);
  view.shape = std::move(shape);
  return view;
}

TensorView ByteElement(const WeightSource& weights, const std::string& name, std::vector<int64_t> shape,
                       int64_t index) {
  TensorView view = Element(weights, name, std::move(shape), index);
  if (view.type == kernels::WeightType::kUInt8) return view;
  throw ModelError("cannot load tensor " + Escape(name) + ": must be U8 (" + std::string(InfoOf(view.type).name) + ")");
}

TensorView FloatElement(const WeightSource& weights, const std::string& name, std::vector<int64_t> shape,
                        int64_t index) {
  TensorView view = Element(weights, name, std::move(shape), index);
  view.CheckFloatingPoint();
  return view;
}

// Converts a block of 32 codes to the block of GGUF's MXFP4: the exponent, then bytes with codes j and j + 16.
void RepackBlock(const std::byte* codes, std::byte scale, std::byte* out) {
  const auto code = [codes](int64_t i) {
    const auto byte = static_cast<unsigned>(codes[i / 2]);
    return i % 2 == 0 ? byte & 15u : byte >> 4;
  };
  out[0] = scale;
  for (int64_t j = 0; j < kMxfp4Bytes; ++j) {
    out[1 + j] = static_cast<std::byte>(code(j) | code(j + kMxfp4Columns / 2) << 4);
  }
}

}  // namespace

ExpertWeights::ExpertWeights(const LoadContext& load, const std::string& prefix, const MoeSpec& spec,
                             int64_t hidden_size, int64_t expert)
    : base_(load.weights) {
  const std::string experts = prefix + spec.experts;
  if (spec.layout == ExpertLayout::kSeparate || base_.Contains(experts + "0." + spec.expert.down_proj + ".weight")) {
    return;
  }
  if (spec.layout == ExpertLayout::kStacked) {
    AddStacked(prefix, spec, hidden_size, expert);
  } else if (spec.layout == ExpertLayout::kTransposed) {
    AddTransposedExpert(load, experts, spec, hidden_size, expert, spec.expert.intermediate_size, 1);
  } else if (spec.layout == ExpertLayout::kMegaBlocks) {
    AddMegaBlocks(load, experts, spec, hidden_size, expert);
  } else {
    AddGptOss(load, experts, spec, hidden_size, expert);
  }
}

void ExpertWeights::AddStacked(const std::string& prefix, const MoeSpec& spec, int64_t hidden_size, int64_t expert) {
  const int64_t count = spec.routing.num_experts;
  const int64_t size = spec.expert.intermediate_size;
  const std::string own = prefix + spec.experts + std::to_string(expert) + ".";
  const TensorView gate_up =
      FloatElement(base_, prefix + spec.stacked_gate_up + ".weight", {count, 2 * size, hidden_size}, expert);
  const TensorView down =
      FloatElement(base_, prefix + spec.stacked_down + ".weight", {count, hidden_size, size}, expert);
  AddView(own + spec.expert.gate_proj + ".weight", gate_up, 0, size);
  AddView(own + spec.expert.up_proj + ".weight", gate_up, size, size);
  AddView(own + spec.expert.down_proj + ".weight", down, 0, hidden_size);
}

void ExpertWeights::AddView(const std::string& name, TensorView matrix, int64_t first, int64_t num_rows) {
  const auto row_bytes = static_cast<size_t>(matrix.RowBytes());
  matrix.data = matrix.data.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(num_rows) * row_bytes);
  matrix.shape[0] = num_rows;
  tensors_[name] = std::move(matrix);
}

void ExpertWeights::AddTransposedExpert(const LoadContext& load, const std::string& experts, const MoeSpec& spec,
                                        int64_t hidden_size, int64_t expert, int64_t up, int64_t step) {
  const int64_t count = spec.routing.num_experts;
  const int64_t size = spec.expert.intermediate_size;
  const std::string own = experts + std::to_string(expert) + ".";
  const TensorView gate_up = FloatElement(base_, experts + "gate_up_proj", {count, hidden_size, 2 * size}, expert);
  const TensorView down = FloatElement(base_, experts + "down_proj", {count, size, hidden_size}, expert);
  AddTransposed(load, own + spec.expert.gate_proj + ".weight", gate_up, 0, step, size);
  AddTransposed(load, own + spec.expert.up_proj + ".weight", gate_up, up, step, size);
  AddTransposed(load, own + spec.expert.down_proj + ".weight", down, 0, 1, hidden_size);
}

void ExpertWeights::AddGptOss(const LoadContext& load, const std::string& experts, const MoeSpec& spec,
                              int64_t hidden_size, int64_t expert) {
  const int64_t count = spec.routing.num_experts;
  const int64_t size = spec.expert.intermediate_size;
  const std::string own = experts + std::to_string(expert) + ".";
  const std::string gate = own + spec.expert.gate_proj, up = own + spec.expert.up_proj;
  const std::string down = own + spec.expert.down_proj;
  if (base_.Contains(experts + "gate_up_proj_blocks")) {
    if (hidden_size % kMxfp4Columns != 0 || size % kMxfp4Columns != 0) {
      throw ModelError("cannot load tensor " + Escape(experts) +
                       "gate_up_proj_blocks: hidden_size and intermediate_size must be multiples of 32 (" +
                       std::to_string(hidden_size) + ", " + std::to_string(size) + ")");
    }
    const auto get = [&](const char* name, int64_t rows, int64_t columns) {
      const int64_t blocks = columns / kMxfp4Columns;
      const std::string stem = experts + name;
      return std::pair{ByteElement(base_, stem + "_blocks", {count, rows, blocks, kMxfp4Bytes}, expert),
                       ByteElement(base_, stem + "_scales", {count, rows, blocks}, expert)};
    };
    const auto [up_blocks, up_scales] = get("gate_up_proj", 2 * size, hidden_size);
    const auto [down_blocks, down_scales] = get("down_proj", hidden_size, size);
    AddMxfp4(load, gate + ".weight", up_blocks, up_scales, 0, 2);
    AddMxfp4(load, up + ".weight", up_blocks, up_scales, 1, 2);
    AddMxfp4(load, down + ".weight", down_blocks, down_scales, 0, 1);
  } else {
    AddTransposedExpert(load, experts, spec, hidden_size, expert, 1, 2);
  }
  const TensorView biases = FloatElement(base_, experts + "gate_up_proj_bias", {count, 2 * size}, expert);
  AddElements(gate + ".bias", biases, 0, 2);
  AddElements(up + ".bias", biases, 1, 2);
  AddElements(down + ".bias", FloatElement(base_, experts + "down_proj_bias", {count, hidden_size}, expert), 0, 1);
}

void ExpertWeights::AddMegaBlocks(const LoadContext& load, const std::string& experts, const MoeSpec& spec,
                                  int64_t hidden_size, int64_t expert) {
  const int64_t size = spec.expert.intermediate_size;
  const std::string own = experts + std::to_string(expert) + ".";
  const auto get = [&](const char* name) {
    TensorView all = base_.Get(experts + name, std::array{spec.routing.num_experts * size, hidden_size});
    all.CheckFloatingPoint();
    return all;
  };
  AddView(own + spec.expert.up_proj + ".weight", get("mlp.w1"), expert * size, size);
  TensorView down = get("mlp.w2");
  const auto bytes = static_cast<size_t>(size * down.RowBytes());
  down.data = down.data.subspan(static_cast<size_t>(expert) * bytes, bytes);
  down.shape[0] = size;
  AddTransposed(load, own + spec.expert.down_proj + ".weight", down, 0, 1, hidden_size);
}

template <typename F>
void ExpertWeights::AddRows(const LoadContext& load, const std::string& name, kernels::WeightType type,
                            int64_t num_rows, int64_t num_columns, F&& row) {
  const int64_t row_bytes = BytesOf(type, num_columns);
  std::vector<std::byte>& bytes = owned_.emplace_back(static_cast<size_t>(num_rows * row_bytes));
  constexpr int64_t kRowsPerTask = 64;
  load.step.threads->ParallelFor((num_rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int /*thread*/) {
    const int64_t end = std::min(num_rows, (task + 1) * kRowsPerTask);
    for (int64_t i = task * kRowsPerTask; i < end; ++i) row(i, bytes.data() + i * row_bytes);
  });
  tensors_[name] = {.name = name, .type = type, .shape = {num_rows, num_columns}, .data = bytes};
}

void ExpertWeights::AddTransposed(const LoadContext& load, const std::string& name, const TensorView& matrix,
                                  int64_t first, int64_t step, int64_t num_rows) {
  const int64_t num_columns = matrix.shape[0];
  const auto size = static_cast<int64_t>(SizeOf(matrix.dtype()));
  AddRows(load, name, matrix.type, num_rows, num_columns, [&](int64_t i, std::byte* out) {
    const std::byte* from = matrix.data.data() + (first + step * i) * size;
    for (int64_t k = 0; k < num_columns; ++k) {
      std::memcpy(out + k * size, from + k * matrix.RowBytes(), static_cast<size_t>(size));
    }
  });
}

void ExpertWeights::AddMxfp4(const LoadContext& load, const std::string& name, const TensorView& blocks,
                             const TensorView& scales, int64_t first, int64_t step) {
  const int64_t num_blocks = blocks.shape[1];
  AddRows(load, name, kernels::WeightType::kMXFP4, blocks.shape[0] / step, num_blocks * kMxfp4Columns,
          [&](int64_t i, std::byte* out) {
            const int64_t begin = (first + step * i) * num_blocks;
            for (int64_t b = 0; b < num_blocks; ++b) {
              RepackBlock(blocks.data.data() + (begin + b) * kMxfp4Bytes, scales.data[static_cast<size_t>(begin + b)],
                          out + b * (1 + kMxfp4Bytes));
            }
          });
}

void ExpertWeights::AddElements(const std::string& name, const TensorView& vector, int64_t first, int64_t step) {
  const size_t size = SizeOf(vector.dtype());
  const int64_t count = vector.shape[0] / step;
  std::vector<std::byte>& bytes = owned_.emplace_back(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size,
                vector.data.data() + static_cast<size_t>(first + step * i) * size, size);
  }
  tensors_[name] = {.name = name, .type = vector.type, .shape = {count}, .data = bytes};
}

TensorView ExpertWeights::Get(std::string_view name, std::span<const int64_t> shape) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return base_.Get(name, shape);
  // The shapes of the stacked tensors were checked before they were converted.
  VLLM_CHECK(std::ranges::equal(it->second.shape, shape));
  return it->second;
}

std::optional<std::vector<int64_t>> ExpertWeights::ShapeOf(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? base_.ShapeOf(name) : it->second.shape;
}

}  // namespace vllm
