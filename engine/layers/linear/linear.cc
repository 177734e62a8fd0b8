#include "engine/layers/linear/linear.h"

#include <algorithm>

#include "engine/layers/norm.h"

namespace vllm {

namespace {

bool HasBias(const WeightSource& weights, const std::string& layer, bool family_has_bias) {
  return weights.DecidesBiases() ? weights.Contains(layer + ".bias") : family_has_bias;
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const LoadContext& load, const ModelConfig& model, int64_t in_features,
                                           const std::vector<OutputSlice>& slices, bool has_bias)
    : step_(load.step), weight_(load, model, slices, in_features, {0, in_features}) {
  const auto slice_has_bias = [&](const OutputSlice& slice) { return HasBias(load.weights, slice.name, has_bias); };
  if (std::none_of(slices.begin(), slices.end(), slice_has_bias)) return;
  bias_.reserve(static_cast<size_t>(weight_.num_rows()));
  for (const OutputSlice& slice : slices) {
    if (!slice_has_bias(slice)) {
      bias_.resize(bias_.size() + static_cast<size_t>(slice.shard.count));
      continue;
    }
    const std::vector<float> bias = LoadFloats(load.weights, slice.name + ".bias", slice.total_rows, slice.shard);
    bias_.insert(bias_.end(), bias.begin(), bias.end());
  }
}

void ColumnParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y,
                                   int64_t y_stride) const {
  weight_.Multiply(step_, bias_.empty() ? nullptr : bias_.data(), x, x_stride, num_rows, y, y_stride);
}

RowParallelLinear::RowParallelLinear(const LoadContext& load, const ModelConfig& model, const std::string& name,
                                     int64_t out_features, int64_t total_in_features, Shard in_shard, bool has_bias,
                                     bool reduce)
    : step_(load.step),
      weight_(load, model, {{name, out_features, {0, out_features}}}, total_in_features, in_shard),
      reduce_(reduce) {
  if (HasBias(load.weights, name, has_bias))
    bias_ = LoadFloats(load.weights, name + ".bias", out_features, {0, out_features});
}

void RowParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y) const {
  const int64_t out_features = weight_.num_rows();
  const bool is_reduced_here = step_.world_size() > 1 && reduce_;
  // Without an all-reduce here (one rank, or the caller reduces), only rank 0 adds the bias.
  const bool adds_bias = !bias_.empty() && !is_reduced_here && step_.rank() == 0;
  weight_.Multiply(step_, adds_bias ? bias_.data() : nullptr, x, x_stride, num_rows, y, out_features);
  if (!is_reduced_here) return;
  step_.communicator->AllReduce(y, num_rows * out_features);
  if (bias_.empty()) return;
  for (int64_t row = 0; row < num_rows; ++row) step_.kernels->add(y + row * out_features, bias_.data(), out_features);
}

}  // namespace vllm
