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
                                           const LinearRows& rows, bool has_bias)
    : step_(load.step),
      weight_(load, model, rows, in_features),
      bias_(LoadBiases(load.weights, rows.Of(load.step.rank()), has_bias, weight_.num_rows())),
      lora_(load,
            {.slices = rows.Of(load.step.rank()), .in_features = in_features, .weight = &weight_, .bias = bias_}) {}

void ColumnParallelLinear::Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride,
                                   const int32_t* lora_slots) const {
  weight_.Multiply(step_, bias(), x, x_stride, num_rows, y, y_stride);
  lora_.Add(lora_slots, x, x_stride, num_rows, y, y_stride);
}

}  // namespace vllm
