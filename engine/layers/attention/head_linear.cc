#include "engine/layers/attention/head_linear.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"
#include "engine/layers/linear/linear_weight.h"

namespace vllm {

namespace {

// Gives all matrices the temporary buffers of another memory.
class TemporaryMemory final : public WeightMemory {
 public:
  explicit TemporaryMemory(WeightMemory& memory) : memory_(memory) {}
  kernels::BufferSource Buffers(const std::string& /*name*/) override { return memory_.TemporaryBuffers(); }
  bool Contains(const std::string& /*name*/, const std::vector<size_t>& /*sizes*/) const override { return false; }
  kernels::BufferSource TemporaryBuffers() override { return memory_.TemporaryBuffers(); }

 private:
  WeightMemory& memory_;
};

// Returns true if the model is built only to look up its tensors, as CheckWeights does. Buffers then have no memory.
bool OnlyLooksUp(const LoadContext& load) { return load.memory.TemporaryBuffers()({1})[0].is_filled(); }

// Returns rows [begin, begin + rows.num_rows) of the checkpoint matrix as float32, or nothing if OnlyLooksUp.
std::vector<float> ReadRows(const LoadContext& load, ModelConfig model, const HeadRows& rows, int64_t begin) {
  // With float32, a LinearWeight keeps the checkpoint's values.
  model.dtype = kernels::DType::kFloat32;
  if (model.quantization.quantizes_at_load()) model.quantization = {};
  TemporaryMemory memory(load.memory);
  const LoadContext exact{load.config, load.weights, memory, load.step};
  const OutputSlice slice{rows.name, rows.num_heads * rows.rows_per_head, {begin, rows.num_rows}};
  const LinearWeight weight(exact, model, {slice}, rows.num_columns);
  if (OnlyLooksUp(load)) return {};
  weight.Reserve(load.step, 1);
  std::vector<float> values(static_cast<size_t>(rows.num_rows * rows.num_columns));
  for (int64_t row = 0; row < rows.num_rows; ++row) {
    weight.UnpackRow(load.step, row, 0, values.data() + row * rows.num_columns);
  }
  return values;
}

std::vector<float> Transposed(const std::vector<float>& values, int64_t num_rows, int64_t num_columns) {
  std::vector<float> result(values.size());
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t column = 0; column < num_columns; ++column) {
      result[static_cast<size_t>(column * num_rows + row)] = values[static_cast<size_t>(row * num_columns + column)];
    }
  }
  return result;
}

}  // namespace

HeadLinear::HeadLinear(const LoadContext& load, const ModelConfig& model, const HeadRows& rows, Shard heads)
    : step_(load.step) {
  const int64_t out_features = rows.transposed ? rows.num_columns : rows.num_rows;
  const int64_t in_features = rows.transposed ? rows.num_rows : rows.num_columns;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    const int64_t begin = head * rows.rows_per_head + rows.first_row;
    const std::string name = rows.name + (rows.transposed ? "#transposed" : "#head") + std::to_string(begin);
    kernels::PackedMatrix& matrix =
        matrices_.emplace_back(out_features, in_features, model.dtype, load.memory.Buffers(name));
    if (matrix.is_filled() && !OnlyLooksUp(load)) continue;
    std::vector<float> values = ReadRows(load, model, rows, begin);
    if (values.empty()) continue;
    if (rows.transposed) values = Transposed(values, rows.num_rows, rows.num_columns);
    matrix.PackRows(reinterpret_cast<const std::byte*>(values.data()), kernels::DType::kFloat32,
                    in_features * static_cast<int64_t>(sizeof(float)));
  }
}

void HeadLinear::Forward(HeadVectors<const float> x, int64_t num_rows, HeadVectors<float> y) const {
  // Few enough rows for several tasks per head in a prompt, and enough to reuse the weights.
  constexpr int64_t kRowsPerTask = 64;
  // ForEachRow counts elements, and a multiply-add takes less time than an element.
  constexpr int64_t kMultiplyAddsPerElement = 4;
  const int64_t num_parts = (num_rows + kRowsPerTask - 1) / kRowsPerTask;
  const auto num_heads = static_cast<int64_t>(matrices_.size());
  const kernels::PackedMatrixView& first = matrices_[0].view();
  const int64_t cost = std::min(num_rows, kRowsPerTask) * first.num_rows * first.num_columns / kMultiplyAddsPerElement;
  ForEachRow(step_, num_heads * num_parts, cost, [&](int64_t task) {
    const int64_t head = task / num_parts, part = task % num_parts;
    const int64_t begin = num_rows * part / num_parts, end = num_rows * (part + 1) / num_parts;
    const kernels::PackedMatrixView& w = matrices_[static_cast<size_t>(head)].view();
    step_.kernels->linear(x.data + begin * x.row_stride + head * x.head_stride, x.row_stride, end - begin, w, nullptr,
                          y.data + begin * y.row_stride + head * y.head_stride, y.row_stride, 0, w.num_panels());
  });
}

}  // namespace vllm
