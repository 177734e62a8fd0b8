// Bounds the memory that the output of one request may take, before the request runs. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "engine/request/sampling_params.h"

namespace vllm {

// Bytes in the worst case: every sequence reaches max_tokens, and a slow reader takes nothing until the end.
struct OutputMemory {
  // Tokens of one sequence, prompt and answer. The KV cache bounds how many such sequences run at the same time, and
  // needs far more memory per token.
  int64_t sequence_bytes = 0;
  // Everything else that the scheduler, the ranks, the output queue and the front end hold until the output has been
  // taken: logprobs, and the further sequences, which the request keeps after they have left the KV cache. Adds up over
  // running requests.
  int64_t held_bytes = 0;
  // Needed while the finished output is written as JSON; one request at a time.
  int64_t record_bytes = 0;

  int64_t total_bytes() const;
};

// REQUIRES: params are normalized and max_tokens is set.
OutputMemory EstimateOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size);

// Returns the bytes of one sequence of `num_tokens` tokens without logprobs.
int64_t PlainOutputBytes(int64_t num_tokens);

// The default limit: a share of the memory that remains once the KV cache is sized, but at least enough for one
// sequence of the longest length.
int64_t DefaultMaxOutputMemory(int64_t spare_bytes, int64_t max_model_len);

// Throws RequestError, with the figures and what to change, if the request may take more than `limit_bytes`.
void CheckOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size,
                       int64_t limit_bytes);

}  // namespace vllm
