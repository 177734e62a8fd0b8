#include "engine/layers/linear/linear.h"

#include <algorithm>

#include "engine/layers/norm.h"

namespace vllm {

namespace {

bool HasBias(const WeightSource& weights, const std::string& layer, bool family_has_bias) {
  return weights.DecidesBiases() ? weights.Contains(layer + ".bias") : family_has_bias;
}

// Returns the biases of the stacked slices, [num_rows], or an empty vector if no slice has one.
std::vector<float> LoadBiases(const WeightSource& weights, const std::vector<OutputSlice>& slices, bool has_bias,
                              int64_t num_rows) {
  const auto slice_has_bias = [&](const OutputSlice& slice) { return HasBias(weights, slice.name, has_bias); };
  std::vector<float> biases;
  if (std::none_of(slices.begin(), slices.end(), slice_has_bias)) return biases;
  biases.reserve(static_cast<size_t>(num_rows));
  for (const OutputSlice& slice : slices) {
    if (!slice_has_bias(slice)) {
      biases.resize(biases.size() + static_cast<size_t>(slice.shard.count));
      continue;
    }
    const std::vector<float> bias = LoadFloats(weights, slice.name + ".bias", slice.total_rows, slice.shard);
    biases.insert(biases.end(), bias.begin(), bias.end());
  }
  return biases;
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const LoadContext& load, const ModelConfig& model, int64_t in_features,
                                           const std::vector<OutputSlice>& slices, bool has_bias)
    : step_(load.step),
      weight_(load, model, slices, in_features, {0, in_features}),
      bias_(LoadBiases(load.weights, slices, has_bias, weight_.num_rows())),
      lora_(load, {.slices = slices,
                   .in_features = in_features,
                   .columns = {0, in_features},
                   .weight = &weight_,
                   .bias = bias_}) {}

void ColumnParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride,
                                   const int32_t* lora_slots) const {
  weight_.Multiply(step_, bias_.empty() ? nullptr : bias_.data(), x, x_stride, num_rows, y, y_stride);
  lora_.Add(lora_slots, x, x_stride, num_rows, y, y_stride);
}

RowParallelLinear::RowParallelLinear(const LoadContext& load, const ModelConfig& model, const std::string& name,
                                     int64_t out_features, int64_t total_in_features, Shard in_shard, bool has_bias,
                                     bool reduce)
    : step_(load.step),
      weight_(load, model, {{name, out_features, {0, out_features}}}, total_in_features, in_shard),
      bias_(HasBias(load.weights, name, has_bias)
                ? LoadFloats(load.weights, name + ".bias", out_features, {0, out_features})
                : std::vector<float>()),
      reduce_(reduce),
      // The all-reduce adds the ranks' outputs, so only one of them may contain a bias.
      lora_(load, {.slices = {{name, out_features, {0, out_features}}},
                   .in_features = total_in_features,
                   .columns = in_shard,
                   .weight = &weight_,
                   .bias = bias_,
                   .adds_bias = step_.rank() == 0,
                   .y_has_bias = step_.rank() == 0 && !IsReducedHere()}) {}

void RowParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y,
                                const int32_t* lora_slots) const {
  const int64_t out_features = weight_.num_rows();
  const bool is_reduced_here = IsReducedHere();
  // Without an all-reduce here (one rank, or the caller reduces), only rank 0 adds the bias.
  const bool adds_bias = !bias_.empty() && !is_reduced_here && step_.rank() == 0;
  weight_.Multiply(step_, adds_bias ? bias_.data() : nullptr, x, x_stride, num_rows, y, out_features);
  lora_.Add(lora_slots, x, x_stride, num_rows, y, out_features);
  if (!is_reduced_here) return;
  step_.communicator->AllReduce(y, num_rows * out_features);
  if (bias_.empty()) return;
  for (int64_t row = 0; row < num_rows; ++row) step_.kernels->add(y + row * out_features, bias_.data(), out_features);
}

}  // namespace vllm
