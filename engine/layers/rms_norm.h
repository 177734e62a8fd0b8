// RmsNorm: root-mean-square layer norm (arXiv 1910.07467), replicated on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/rank_context.h"
#include "engine/model_loader/weights.h"

namespace vllm {

class RmsNorm {
 public:
  RmsNorm(const RankContext& context, const WeightSource& weights, const std::string& name, int64_t size, double eps);

  // x and out: [num_rows, size], contiguous; out may be x.
  void Forward(const float* x, int64_t num_rows, float* out) const;

 private:
  const RankContext& context_;
  std::vector<float> weight_;
  float eps_;
};

}  // namespace vllm
