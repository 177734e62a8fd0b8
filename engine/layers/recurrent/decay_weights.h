// DecayWeights: the weights from which the decay of a head's state follows: after a token, the state is multiplied by
// exp(a * Softplus(x + dt_bias)), where x is an input. Plain values and pure functions; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"

namespace vllm {

struct DecayWeights {
  std::vector<float> a, dt_bias;  // [number of the rank's heads]; a is negative
};

// Loads the heads `heads` of num_heads. The tensors are A_log and dt_bias, or in GGUF files A = -exp(A_log) and
// dt.bias. Throws ModelError if one is missing or cannot be used.
DecayWeights LoadDecayWeights(const WeightSource& weights, const std::string& prefix, int64_t num_heads, Shard heads);

inline float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

}  // namespace vllm
