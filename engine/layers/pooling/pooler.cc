#include "engine/layers/pooling/pooler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vllm {

namespace {

float Activate(PoolerActivation activation, float x) {
  switch (activation) {
    case PoolerActivation::kIdentity:
      return x;
    case PoolerActivation::kTanh:
      return std::tanh(x);
    case PoolerActivation::kGelu:
      return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
    case PoolerActivation::kGeluTanh: {
      const float factor = std::sqrt(2.0f / std::numbers::pi_v<float>);
      return 0.5f * x * (1.0f + std::tanh(factor * (x + 0.044715f * x * x * x)));
    }
    case PoolerActivation::kRelu:
      return std::max(x, 0.0f);
    case PoolerActivation::kSilu:
      return x / (1.0f + std::exp(-x));
    case PoolerActivation::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
  }
  return x;
}

// Heads are small, so they keep the precision of the checkpoint.
ModelConfig HeadConfig(const ModelConfig& model) {
  ModelConfig head = model;
  head.dtype = kernels::DType::kFloat32;
  head.quantization = {};
  head.conv1d_weights = false;
  return head;
}

void Normalize(std::vector<float>& vector) {
  double squares = 0.0;
  for (const float x : vector) squares += static_cast<double>(x) * static_cast<double>(x);
  const auto factor = static_cast<float>(1.0 / std::max(std::sqrt(squares), 1e-12));
  for (float& x : vector) x *= factor;
}

}  // namespace

Pooler::Layer::Layer(const LoadContext& load, const ModelConfig& model, const PoolerDense& spec)
    : linear_(load, model, spec.in_features, {{spec.name, spec.out_features, {0, spec.out_features}}}, spec.has_bias),
      activation_(spec.activation) {
  linear_.Reserve(1);
  if (spec.norm.empty()) return;
  norm_.emplace(load, spec.norm, spec.out_features,
                NormSpec{NormSpec::Kind::kLayer, model.rms_norm_eps, 0.0, true, model.norm_bias});
}

std::vector<float> Pooler::Layer::Forward(const std::vector<float>& x) const {
  std::vector<float> y(static_cast<size_t>(linear_.out_features()));
  linear_.Forward(x.data(), static_cast<int64_t>(x.size()), 1, y.data(), linear_.out_features());
  for (float& value : y) value = Activate(activation_, value);
  if (norm_) norm_->Row(y.data(), y.data());
  return y;
}

Pooler::Pooler(const LoadContext& load)
    : step_(load.step), config_(load.config.model.pooler), hidden_size_(load.config.model.hidden_size) {
  const ModelConfig model = HeadConfig(load.config.model);
  for (const PoolerDense& spec : config_.dense) dense_.emplace_back(load, model, spec);
  if (!config_.classifier) return;
  for (const PoolerDense& spec : config_.classifier->layers) classifier_.emplace_back(load, model, spec);
}

void Pooler::Add(int64_t position, int64_t num_tokens, const float* hidden, const PoolingParams& params,
                 PoolingState& state) const {
  const bool is_last = position + 1 == num_tokens;
  // Prefix-cache hits may leave out tokens that are not needed.
  if (position < state.num_tokens) return;
  state.num_tokens = position + 1;
  const auto size = static_cast<size_t>(hidden_size_);
  state.vectors.resize(config_.types.size());
  const bool is_prompt = !config_.include_prompt && position < params.num_instruction_tokens;
  for (size_t i = 0; i < config_.types.size(); ++i) {
    std::vector<float>& vector = state.vectors[i];
    const PoolingType type = config_.types[i];
    if ((type == PoolingType::kCls && position > 0) || (type == PoolingType::kLast && !is_last)) continue;
    if (type != PoolingType::kCls && type != PoolingType::kLast && is_prompt) continue;
    if (vector.empty() && type != PoolingType::kWeightedMean) {
      vector.assign(hidden, hidden + size);
    } else if (type == PoolingType::kMax) {
      for (size_t j = 0; j < size; ++j) vector[j] = std::max(vector[j], hidden[j]);
    } else {
      vector.resize(size);
      const float weight = type == PoolingType::kWeightedMean ? static_cast<float>(position + 1) : 1.0f;
      step_.kernels->add_scaled(vector.data(), hidden, weight, hidden_size_);
    }
  }
}

std::vector<float> Pooler::Combine(const PoolingState& state, const PoolingParams& params) const {
  const int64_t num_left_out = config_.include_prompt ? 0 : std::min(params.num_instruction_tokens, state.num_tokens);
  const auto count = static_cast<double>(std::max<int64_t>(1, state.num_tokens - num_left_out));
  std::vector<float> combined;
  for (size_t i = 0; i < config_.types.size(); ++i) {
    double divisor = 1.0;
    if (config_.types[i] == PoolingType::kMean) divisor = count;
    if (config_.types[i] == PoolingType::kMeanSqrtLen) divisor = std::sqrt(count);
    if (config_.types[i] == PoolingType::kWeightedMean) {
      const auto all = static_cast<double>(state.num_tokens), left_out = static_cast<double>(num_left_out);
      divisor = std::max(1.0, (all * (all + 1.0) - left_out * (left_out + 1.0)) / 2.0);
    }
    std::vector<float> vector = state.vectors[i];
    vector.resize(static_cast<size_t>(hidden_size_));
    for (const float x : vector) combined.push_back(static_cast<float>(static_cast<double>(x) / divisor));
  }
  return combined;
}

std::vector<float> Pooler::Finish(const PoolingState& state, const PoolingParams& params) const {
  std::vector<float> vector = Combine(state, params);
  for (const Layer& layer : params.task == PoolingTask::kScore ? classifier_ : dense_) vector = layer.Forward(vector);
  if (params.task == PoolingTask::kScore) {
    if (config_.classifier->asks_yes_or_no && vector.size() == 2) vector = {vector[0] - vector[1]};
    ToScores(vector);
    return vector;
  }
  const int64_t dimensions = params.dimensions > 0 ? params.dimensions : config_.truncate_dim;
  if (dimensions > 0) vector.resize(std::min(vector.size(), static_cast<size_t>(dimensions)));
  if (params.normalize.value_or(config_.normalize)) Normalize(vector);
  return vector;
}

void Pooler::ToScores(std::vector<float>& outputs) const {
  switch (config_.classifier->function) {
    case ClassifierConfig::Function::kNone:
      return;
    case ClassifierConfig::Function::kSigmoid:
      for (float& x : outputs) x = Activate(PoolerActivation::kSigmoid, x);
      return;
    case ClassifierConfig::Function::kSoftmax: {
      const float largest = *std::ranges::max_element(outputs);
      double sum = 0.0;
      for (float& x : outputs) sum += static_cast<double>(x = std::exp(x - largest));
      for (float& x : outputs) x = static_cast<float>(static_cast<double>(x) / sum);
    }
  }
}

}  // namespace vllm
