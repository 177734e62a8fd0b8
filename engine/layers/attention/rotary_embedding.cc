#include "engine/layers/attention/rotary_embedding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

int64_t LocalRotaryDim(const ModelConfig& config) {
  return config.rotary_dim > 0 ? config.rotary_dim : config.head_dim;
}

int64_t RotaryDim(const ModelConfig& config) {
  return config.global_head_dim > 0 ? config.global_head_dim : LocalRotaryDim(config);
}

std::vector<double> UnscaledFrequencies(double base, int64_t rotary_dim) {
  std::vector<double> frequencies(static_cast<size_t>(rotary_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
  }
  return frequencies;
}

// Llama 3.1: stretches long wavelengths by the factor, keeps short ones, and interpolates in between.
void ScaleLlama3(const RopeScaling& scaling, std::vector<double>& frequencies) {
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const double low_wavelength = original / scaling.low_freq_factor;
  const double high_wavelength = original / scaling.high_freq_factor;
  for (double& frequency : frequencies) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength > low_wavelength) {
      frequency /= scaling.factor;
    } else if (wavelength >= high_wavelength) {
      const double smooth =
          (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      frequency = (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
    }
  }
}

double YarnAttentionFactor(const RopeScaling& scaling) {
  if (scaling.attention_factor) return *scaling.attention_factor;
  // transformers uses mscale and mscale_all_dim only if both are set and nonzero.
  if (scaling.mscale.value_or(0.0) != 0.0 && scaling.mscale_all_dim.value_or(0.0) != 0.0) {
    return YarnMscale(scaling.factor, *scaling.mscale) / YarnMscale(scaling.factor, *scaling.mscale_all_dim);
  }
  return YarnMscale(scaling.factor, 1.0);
}

// YaRN (arXiv 2309.00071): keeps the frequencies of dimensions that rotate often, divides those of dimensions that
// rotate rarely by the factor, and blends linearly in between.
void ScaleYarn(const RopeScaling& scaling, double base, int64_t rotary_dim, std::vector<double>& frequencies) {
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const auto dim = static_cast<double>(rotary_dim);
  const auto dimension_of = [&](double rotations) {
    return dim * std::log(original / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
  };
  double low = dimension_of(scaling.beta_fast);
  double high = dimension_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / scaling.factor * ramp + frequencies[i] * (1.0 - ramp);
  }
}

}  // namespace

double YarnMscale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

RotaryEmbedding::RotaryEmbedding(double theta, int64_t rotary_dim)
    : inverse_frequencies_(UnscaledFrequencies(theta, rotary_dim)), base_(theta) {}

RotaryEmbedding RotaryEmbedding::Local(const ModelConfig& config) {
  return RotaryEmbedding(config.rope_local_theta.value(), LocalRotaryDim(config));
}

void RotaryEmbedding::ScaleLong(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const bool is_long = config.max_model_len > scaling.original_max_position_embeddings;
  const std::vector<double>& factors = is_long ? scaling.long_factor : scaling.short_factor;
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) inverse_frequencies_[i] /= factors.at(i);
  if (const std::optional<double> mscale = is_long ? scaling.long_mscale : scaling.short_mscale) {
    attention_factor_ = *mscale;
  } else if (scaling.attention_factor) {
    attention_factor_ = *scaling.attention_factor;
  } else if (scaling.factor > 1.0) {
    const auto original = static_cast<double>(scaling.original_max_position_embeddings);
    attention_factor_ = std::sqrt(1.0 + std::log(scaling.factor) / std::log(original));
  }
}

RotaryEmbedding::RotaryEmbedding(const ModelConfig& config) : RotaryEmbedding(config.rope_theta, RotaryDim(config)) {
  const RopeScaling& scaling = config.rope_scaling;
  if (config.llama_4_scaling_beta) {
    query_scale_beta_ = *config.llama_4_scaling_beta;
    query_scale_period_ = scaling.original_max_position_embeddings;
  }
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      break;
    case RopeScaling::Kind::kLinear:
      for (double& frequency : inverse_frequencies_) frequency /= scaling.factor;
      break;
    case RopeScaling::Kind::kDynamic:
      dynamic_from_ = scaling.original_max_position_embeddings;
      factor_ = scaling.factor;
      break;
    case RopeScaling::Kind::kLlama3:
      ScaleLlama3(scaling, inverse_frequencies_);
      break;
    case RopeScaling::Kind::kYarn:
      ScaleYarn(scaling, config.rope_theta, RotaryDim(config), inverse_frequencies_);
      attention_factor_ = YarnAttentionFactor(scaling);
      break;
    case RopeScaling::Kind::kLongRope:
      ScaleLong(config);
      break;
    case RopeScaling::Kind::kProportional: {
      const auto num_rotated = static_cast<size_t>(scaling.partial_rotary_factor * static_cast<double>(half()));
      for (double& frequency : inverse_frequencies_) frequency /= scaling.factor;
      std::fill(inverse_frequencies_.begin() + static_cast<int64_t>(num_rotated), inverse_frequencies_.end(), 0.0);
      break;
    }
    case RopeScaling::Kind::kFactors:
      for (size_t i = 0; i < inverse_frequencies_.size(); ++i) inverse_frequencies_[i] /= scaling.short_factor.at(i);
      break;
  }
}

void RotaryEmbedding::QueryScales(std::span<const int64_t> positions, float* scales) const {
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto periods = static_cast<double>(positions[i] / query_scale_period_);
    scales[i] = static_cast<float>(1.0 + query_scale_beta_ * std::log1p(periods));
  }
}

std::vector<double> RotaryEmbedding::InverseFrequenciesAt(int64_t position) const {
  const int64_t length = position + 1;
  if (dynamic_from_ == 0 || length <= dynamic_from_) return inverse_frequencies_;
  const auto dim = static_cast<double>(2 * half());
  const double stretch = factor_ * static_cast<double>(length) / static_cast<double>(dynamic_from_) - (factor_ - 1.0);
  return UnscaledFrequencies(base_ * std::pow(stretch, dim / (dim - 2.0)), 2 * half());
}

void RotaryEmbedding::RowAngles(int64_t position, float* cos, float* sin) const {
  const auto fill = [&](const std::vector<double>& frequencies) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cos[i] = static_cast<float>(std::cos(angle) * attention_factor_);
      sin[i] = static_cast<float>(std::sin(angle) * attention_factor_);
    }
  };
  if (dynamic_from_ == 0 || position < dynamic_from_) {
    fill(inverse_frequencies_);
  } else {
    fill(InverseFrequenciesAt(position));
  }
}

void RotaryEmbedding::Angles(const StepContext& step, std::span<const int64_t> positions, float* cos,
                             float* sin) const {
  // A sine or a cosine takes about as long as 40 additions.
  ForEachRow(step, static_cast<int64_t>(positions.size()), 80 * half(), [&](int64_t row) {
    RowAngles(positions[static_cast<size_t>(row)], cos + row * half(), sin + row * half());
  });
}

}  // namespace vllm
