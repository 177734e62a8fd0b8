// RotaryEmbedding (arXiv 2104.09864): rotation angles of a step's positions, computed once per step and shared by all
// layers. The kinds of scaling and their formulas follow transformers' modeling_rope_utils. Angles are computed in
// double. Made at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/layers/step_context.h"

namespace vllm {

class RotaryEmbedding {
 public:
  // Uses rope_theta and rope_scaling. LongRoPE has factors for short and for long contexts. If max_model_len is above
  // the original length, all positions use the long factors (vLLM's rule). transformers looks at each sequence's length
  // instead, so that a key's rotation would depend on how the request continues.
  explicit RotaryEmbedding(const ModelConfig& config);
  // Uses rope_local_theta, without scaling. REQUIRES: the config has rope_local_theta.
  static RotaryEmbedding Local(const ModelConfig& config);

  // Returns half the number of rotated dimensions, which are the first ones of a head.
  int64_t half() const { return static_cast<int64_t>(inverse_frequencies_.size()); }

  // Fills cos and sin, [positions.size(), half()], scaled by the attention factor.
  void Angles(const StepContext& step, std::span<const int64_t> positions, float* cos, float* sin) const;

  // For tests: returns the inverse frequencies used at `position`.
  std::vector<double> InverseFrequenciesAt(int64_t position) const;
  double attention_factor() const { return attention_factor_; }

 private:
  RotaryEmbedding(double theta, int64_t rotary_dim);
  void ScaleLong(const ModelConfig& config);
  void RowAngles(int64_t position, float* cos, float* sin) const;

  std::vector<double> inverse_frequencies_;  // [half]
  double attention_factor_ = 1.0;
  // Dynamic NTK: from this position on, the base grows with the position, never with the batch.
  int64_t dynamic_from_ = 0;  // 0: not dynamic
  double base_ = 10000.0;
  double factor_ = 1.0;
};

}  // namespace vllm
