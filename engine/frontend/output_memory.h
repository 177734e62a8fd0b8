// How much memory the output of one request may take, computed before the request runs. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "engine/request/sampling_params.h"

namespace vllm {

// Bytes in the worst case: every sequence reaches max_tokens, and a slow reader lets all of it pile up.
struct OutputMemory {
  // The tokens of one sequence, prompt and answer. The KV cache bounds how many such sequences run at the same time,
  // and a token takes far more there.
  int64_t sequence_bytes = 0;
  // Everything else, from the request's start until its output has been taken: logprobs, and the further sequences,
  // which the request keeps when they have left the KV cache. What the scheduler, the ranks, the output queue and the
  // front end hold. Requests that run at the same time hold theirs at the same time.
  int64_t held_bytes = 0;
  // While the finished output is written as JSON, one request at a time.
  int64_t record_bytes = 0;

  int64_t total_bytes() const;
};

// REQUIRES: params are normalized and max_tokens is set.
OutputMemory EstimateOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size);

// What one sequence of `num_tokens` tokens without logprobs takes.
int64_t PlainOutputBytes(int64_t num_tokens);

// The limit where none is given: a share of the memory that is left once the KV cache is sized, but never less than a
// request for one sequence of the longest length needs.
int64_t DefaultMaxOutputMemory(int64_t spare_bytes, int64_t max_model_len);

// Throws RequestError, with the figures and what to do, when the request may take more than `limit_bytes`.
void CheckOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size,
                       int64_t limit_bytes);

}  // namespace vllm
