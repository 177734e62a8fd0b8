#include "engine/layers/linear.h"

#include <array>

namespace vllm {

namespace {

std::vector<float> LoadVector(const WeightSource& weights, const std::string& name, int64_t total, Shard shard) {
  const TensorView view = weights.Get(name, std::array{total});
  std::vector<float> values(static_cast<size_t>(shard.count));
  ConvertToFloat(view.data.data() + static_cast<size_t>(shard.begin) * SizeOf(view.dtype), view.dtype, shard.count,
                 values.data());
  return values;
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const RankContext& context, const WeightSource& weights, int64_t in_features,
                                           const std::vector<OutputSlice>& slices, bool has_bias, DType dtype)
    : context_(context) {
  int64_t num_rows = 0;
  for (const OutputSlice& slice : slices) num_rows += slice.shard.count;
  weight_ = LinearWeight(context, num_rows, in_features, dtype);
  int64_t row = 0;
  for (const OutputSlice& slice : slices) {
    const TensorView view = weights.Get(slice.name + ".weight", std::array{slice.total_rows, in_features});
    const int64_t stride = in_features * static_cast<int64_t>(SizeOf(view.dtype));
    weight_.FillRows(view.data.data() + slice.shard.begin * stride, view.dtype, stride, row, slice.shard.count);
    row += slice.shard.count;
    if (has_bias) {
      const std::vector<float> bias = LoadVector(weights, slice.name + ".bias", slice.total_rows, slice.shard);
      bias_.insert(bias_.end(), bias.begin(), bias.end());
    }
  }
}

void ColumnParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y,
                                   int64_t y_stride) const {
  weight_.Multiply(context_, bias_.empty() ? nullptr : bias_.data(), x, x_stride, num_rows, y, y_stride);
}

RowParallelLinear::RowParallelLinear(const RankContext& context, const WeightSource& weights, const std::string& name,
                                     int64_t out_features, int64_t total_in_features, Shard in_shard, bool has_bias,
                                     DType dtype)
    : context_(context), weight_(context, out_features, in_shard.count, dtype) {
  const TensorView view = weights.Get(name + ".weight", std::array{out_features, total_in_features});
  const auto size = static_cast<int64_t>(SizeOf(view.dtype));
  weight_.FillRows(view.data.data() + in_shard.begin * size, view.dtype, total_in_features * size, 0, out_features);
  if (has_bias) bias_ = LoadVector(weights, name + ".bias", out_features, {0, out_features});
}

void RowParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y) const {
  const int64_t out_features = weight_.num_rows();
  const bool alone = context_.size() == 1;
  weight_.Multiply(context_, alone && !bias_.empty() ? bias_.data() : nullptr, x, x_stride, num_rows, y, out_features);
  if (alone) return;
  context_.communicator->AllReduce(y, num_rows * out_features);
  if (bias_.empty()) return;
  for (int64_t row = 0; row < num_rows; ++row)
    context_.kernels->add(y + row * out_features, bias_.data(), out_features);
}

}  // namespace vllm
