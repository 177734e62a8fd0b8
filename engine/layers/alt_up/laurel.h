// Laurel (learned augmented residual layer, arXiv 2411.07501), as in Gemma 3n: a low-rank branch parallel to attention.
// Owned by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"

namespace vllm {

// Tensor names are relative to the layer's prefix.
struct LaurelSpec {
  int64_t rank = 0;
  NormSpec norm;
  std::string prefix = "laurel.";
};

class Laurel {
 public:
  Laurel(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const LaurelSpec& spec);

  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_tokens) const { return num_tokens * shard_.count; }
  void Reserve(int64_t max_tokens) const {
    left_.Reserve(max_tokens);
    right_.Reserve(max_tokens);
  }
  // out = x + norm(right(left(x))). x, out: [num_tokens, hidden_size]; lora_slots: [num_tokens] or null.
  void Forward(const float* x, int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) const;

 private:
  const StepContext& step_;
  int64_t hidden_size_;
  Shard shard_;  // of the rank of the branch
  ColumnParallelLinear left_;
  GatheredLinear right_;
  Norm norm_;
};

}  // namespace vllm
