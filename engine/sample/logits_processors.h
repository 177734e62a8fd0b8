// LogitsProcessors: what changes single logits before temperature: allowed ids, bad words, min_tokens, logit_bias and
// the penalties, in vLLM's order. Holds scratch of the vocabulary's size; one a Sampler, its thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/sampling_params.h"

namespace vllm {

class LogitsProcessors {
 public:
  explicit LogitsProcessors(int64_t vocab_size);

  // True when Apply would change anything.
  static bool IsNeeded(const SamplingParams& params, size_t num_output_tokens);

  // Ids outside the vocabulary are passed over.
  void Apply(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
             std::span<const int32_t> output_token_ids, std::span<float> logits);

 private:
  void ApplyPenalties(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
                      std::span<const int32_t> output_token_ids, std::span<float> logits);

  // Per id: 0 unseen, 1 in the prompt only, else 1 + its count among the outputs. All 0 between calls.
  std::vector<int32_t> counts_;
  std::vector<int32_t> seen_;
  std::vector<float> kept_;
};

}  // namespace vllm
