#include "engine/layers/recurrent/decay_weights.h"

#include "engine/layers/norm.h"

namespace vllm {

DecayWeights LoadDecayWeights(const WeightSource& weights, const std::string& prefix, int64_t num_heads, Shard heads) {
  const bool is_gguf = !weights.Contains(prefix + "A_log") && weights.Contains(prefix + "A");
  DecayWeights decay;
  decay.a = LoadFloats(weights, prefix + (is_gguf ? "A" : "A_log"), num_heads, heads);
  if (!is_gguf) {
    for (float& a : decay.a) a = -std::exp(a);
  }
  decay.dt_bias = LoadFloats(weights, prefix + (is_gguf ? "dt.bias" : "dt_bias"), num_heads, heads);
  return decay;
}

}  // namespace vllm
