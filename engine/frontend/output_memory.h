// OutputMemory: an estimate, made before a request runs, of the most memory that its output may take. AdmissionQueue
// and the check of new requests use it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/request/sampling_params.h"

namespace vllm {

// Bytes in the worst case: every sequence reaches max_tokens, and the reader takes no output until the end.
struct OutputMemory {
  // The tokens of one sequence, prompt and answer. The KV cache bounds how many such sequences run at the same time,
  // and needs far more memory per token, so AdmissionQueue does not count these bytes.
  int64_t sequence_bytes = 0;
  // Everything else that the scheduler, the ranks, the output queue and the front end hold until the output has been
  // taken: logprobs, and the sequences after the first, which stay in memory after they finish. AdmissionQueue counts
  // these bytes for every admitted request.
  int64_t held_bytes = 0;
  // Needed while the finished output is written as JSON. Only one request at a time needs this memory.
  int64_t record_bytes = 0;

  int64_t total_bytes() const;
};

// Returns the estimate for a request. REQUIRES: params are normalized and max_tokens is set.
OutputMemory EstimateOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size);

// Returns the bytes of one sequence of `num_tokens` tokens without logprobs.
int64_t PlainOutputBytes(int64_t num_tokens);

// Returns the default limit in bytes: a share of `spare_bytes`, the memory that remains if the KV cache is full, but at
// least enough for one sequence of max_model_len tokens without logprobs.
int64_t DefaultMaxOutputMemory(int64_t spare_bytes, int64_t max_model_len);

// Throws RequestError if the request may take more than `limit_bytes`. The message shows the sizes that determine the
// estimate, and the parameters to change.
void CheckOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size,
                       int64_t limit_bytes);

}  // namespace vllm
