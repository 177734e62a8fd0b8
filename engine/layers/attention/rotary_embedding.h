// RotaryEmbedding (arXiv 2104.09864): the angles of a step's positions, computed once a step and shared by all layers.
// Scaling kinds and formulas as transformers' modeling_rope_utils; angles are taken in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/layers/step_context.h"

namespace vllm {

class RotaryEmbedding {
 public:
  // Of rope_theta and rope_scaling. LongRoPE has factors for short and for long contexts: all positions take the long
  // ones when max_model_len is above the original length (vLLM's rule; transformers looks at each sequence's length,
  // which would let a key's rotation depend on how the request goes on).
  explicit RotaryEmbedding(const ModelConfig& config);
  // Of rope_local_theta, without scaling. REQUIRES: the config has one.
  static RotaryEmbedding Local(const ModelConfig& config);

  // Half the number of a head's leading dimensions that turn.
  int64_t half() const { return static_cast<int64_t>(inverse_frequencies_.size()); }

  // cos, sin: [positions.size(), half()], scaled by the attention factor.
  void Angles(const StepContext& step, std::span<const int64_t> positions, float* cos, float* sin) const;

  // For tests: inverse frequencies as used at `position`.
  std::vector<double> InverseFrequenciesAt(int64_t position) const;
  double attention_factor() const { return attention_factor_; }

 private:
  RotaryEmbedding(double theta, int64_t rotary_dim);
  void ScaleLong(const ModelConfig& config);
  void RowAngles(int64_t position, float* cos, float* sin) const;

  std::vector<double> inverse_frequencies_;  // [half]
  double attention_factor_ = 1.0;
  // Dynamic NTK: past this position the base grows with the position itself, never with the batch.
  int64_t dynamic_from_ = 0;  // 0: not dynamic
  double base_ = 10000.0;
  double factor_ = 1.0;
};

}  // namespace vllm
