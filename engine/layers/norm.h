// Norm: RMS norm (arXiv 1910.07467) or layer norm (arXiv 1607.06450) of rows, replicated on every rank. Owned by a
// layer or the model. Built at load, then used by the threads of the rank's pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"

namespace vllm {

struct NormSpec {
  enum class Kind : uint8_t { kRms, kLayer };
  Kind kind = Kind::kRms;
  double eps = 1e-6;
  double offset = 0.0;     // added to the weights
  bool has_weight = true;  // if false, there is no bias either
  bool has_bias = false;   // layer norm only
};

// Returns elements [shard.begin, shard.begin + shard.count) of tensor `name`, a vector of `total` elements, as float32.
// Throws ModelError if the tensor is missing or has the wrong shape or type.
std::vector<float> LoadFloats(const WeightSource& weights, const std::string& name, int64_t total, Shard shard);

class Norm {
 public:
  // Reads `name`.weight and `name`.bias, each only if the norm has it according to `spec`. Without a weight, the
  // weights of an RMS norm are 1. Throws as LoadFloats does.
  Norm(const LoadContext& load, const std::string& name, int64_t size, const NormSpec& spec);

  // x and out: [num_rows, size], contiguous; out may be x.
  void Forward(const float* x, int64_t num_rows, float* out) const;
  // Normalizes one row of `size` elements. Any thread may call it.
  void Row(const float* x, float* out) const;

 private:
  const StepContext& step_;
  NormSpec::Kind kind_;
  int64_t size_;
  float eps_;
  std::vector<float> weight_, bias_;  // [size], or empty if there is none
};

}  // namespace vllm
