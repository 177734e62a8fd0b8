// RotaryEmbedding (arXiv 2104.09864): rotation angles of a step's positions, computed once per step and shared by all
// layers. The formulas of scaling follow transformers' modeling_rope_utils with three exceptions: LongRoPE chooses its
// factors by max_model_len, dynamic NTK uses the position of each token, and kFactors divides by the factors in a GGUF
// file. Angles are computed in double precision. Owned by the DecoderModel. Built at load, then used by the rank's
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/layers/step_context.h"

namespace vllm {

// Returns YaRN's attention scale for a context that is `factor` times as long: 0.1 * mscale * log(factor) + 1, or 1 if
// the factor is at most 1.
double YarnMscale(double factor, double mscale);

class RotaryEmbedding {
 public:
  // Uses rope_theta and rope_scaling. LongRoPE has factors for short and for long contexts. If max_model_len exceeds
  // original_max_position_embeddings, all positions use the long factors (vLLM's rule). transformers chooses by the
  // current length of the sequence instead. Keys that are already cached would then be wrong once a sequence exceeds
  // the original length.
  explicit RotaryEmbedding(const ModelConfig& config);
  // Uses rope_local_theta, without scaling. REQUIRES: the config has rope_local_theta.
  static RotaryEmbedding Local(const ModelConfig& config);

  // Returns half the number of rotated dimensions. The first 2 * half() dimensions of a head are rotated.
  int64_t half() const { return static_cast<int64_t>(inverse_frequencies_.size()); }

  // Fills cos and sin, [positions.size(), half()], both multiplied by attention_factor().
  void Angles(const StepContext& step, std::span<const int64_t> positions, float* cos, float* sin) const;

  // Fills scales, [positions.size()], with Ministral 3's factors of the queries: 1 + beta * log(1 + floor(position /
  // original_max_position_embeddings)), where beta is llama_4_scaling_beta. REQUIRES: scales_queries().
  void QueryScales(std::span<const int64_t> positions, float* scales) const;
  bool scales_queries() const { return query_scale_period_ > 0; }

  // Returns the inverse frequencies at `position`, [half()]. They depend on `position` only with dynamic NTK scaling.
  std::vector<double> InverseFrequenciesAt(int64_t position) const;
  double attention_factor() const { return attention_factor_; }

 private:
  RotaryEmbedding(double theta, int64_t rotary_dim);
  void ScaleLong(const ModelConfig& config);
  void RowAngles(int64_t position, float* cos, float* sin) const;

  std::vector<double> inverse_frequencies_;  // [half]
  double attention_factor_ = 1.0;
  // Dynamic NTK: from this position on, the base grows with the token's own position. The base does not depend on the
  // other sequences of the batch.
  int64_t dynamic_from_ = 0;  // 0: not dynamic
  double base_ = 10000.0;
  double factor_ = 1.0;
  double query_scale_beta_ = 0.0;
  int64_t query_scale_period_ = 0;  // 0: queries are not scaled
};

}  // namespace vllm
