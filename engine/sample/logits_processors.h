// LogitsProcessors: changes individual logits before temperature is applied. It handles allowed ids, bad words,
// min_tokens, logit_bias and penalties, in vLLM's order. Contains scratch of vocabulary size. Owned by a Sampler; used
// only on the thread that calls the Sampler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/sampling_params.h"

namespace vllm {

// Sets logit t to -inf unless bit t % 32 of word t / 32 of `bitmask` is set. Does nothing if `bitmask` is empty.
void ApplyBitmask(std::span<const uint32_t> bitmask, std::span<float> logits);

class LogitsProcessors {
 public:
  explicit LogitsProcessors(int64_t vocab_size);

  // Returns true if Apply may change a logit.
  static bool IsNeeded(const SamplingParams& params, size_t num_output_tokens);

  // Applies all processors to `logits`, [vocab_size], in place. Ignores token ids outside the vocabulary, and
  // min_tokens if `must_stop`.
  void Apply(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
             std::span<const int32_t> output_token_ids, bool must_stop, std::span<float> logits);

 private:
  void ApplyPenalties(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
                      std::span<const int32_t> output_token_ids, std::span<float> logits);

  // [vocab_size]. During a call: 0 if the token is not in seen_, else 1 + its count in the output. All 0 between calls.
  std::vector<int32_t> counts_;
  std::vector<int32_t> seen_;  // distinct tokens that penalties apply to
  std::vector<float> allowed_logits_;
};

}  // namespace vllm
