// Pooler: turns the hidden states of a text into its vector, or into the scores of the model's classifier. Owned by the
// Worker of rank 0. Built at load, then used by the rank's thread. Results do not depend on how a text is divided into
// steps, because hidden states are added one by one, in the order of their positions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/config/pooler_config.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"
#include "engine/request/pooling_params.h"

namespace vllm {

// The hidden states of a text so far.
struct PoolingState {
  int64_t num_tokens = 0;                   // positions that have been added
  std::vector<std::vector<float>> vectors;  // [number of pooling types][hidden_size]
};

class Pooler {
 public:
  // Throws as LinearWeight and Norm do.
  explicit Pooler(const LoadContext& load);

  // Adds the hidden state of the token at `position`, of a text of num_tokens tokens. Ignores positions that have been
  // added before. REQUIRES: position <= state.num_tokens, unless only the last token is needed.
  void Add(int64_t position, int64_t num_tokens, const float* hidden, const PoolingParams& params,
           PoolingState& state) const;
  // Returns the vector or the scores of a text whose last token has been added.
  std::vector<float> Finish(const PoolingState& state, const PoolingParams& params) const;
  // Applies the classifier's function to its outputs.
  void ToScores(std::vector<float>& outputs) const;

 private:
  class Layer {
   public:
    Layer(const LoadContext& load, const ModelConfig& model, const PoolerDense& spec);
    std::vector<float> Forward(const std::vector<float>& x) const;

   private:
    ColumnParallelLinear linear_;
    PoolerActivation activation_;
    std::optional<Norm> norm_;
  };
  std::vector<float> Combine(const PoolingState& state, const PoolingParams& params) const;

  const StepContext& step_;
  const PoolerConfig& config_;
  int64_t hidden_size_;
  std::deque<Layer> dense_, classifier_;
};

}  // namespace vllm
