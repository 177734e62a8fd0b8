// ModelRunnerOutput: the sampled tokens and logprobs of one step. Owned and reused by the Executor; valid until the
// next step. Rank 0 writes it, and the scheduler reads it after the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/request/logprobs.h"
#include "engine/request/request_id.h"

namespace vllm {

struct ModelRunnerOutput {
  // One entry per scheduled request, in the order of SchedulerOutput::num_scheduled_tokens. A request that still has
  // tokens to compute after this step samples nothing, so its range is empty.
  std::vector<RequestId> request_ids;
  std::vector<int32_t> sampled_token_ids;  // entry i: [sampled_offsets[i], sampled_offsets[i + 1])
  std::vector<size_t> sampled_offsets{0};
  // The number of drafts of entry i that equal the sampled tokens at their positions, so that their keys and values are
  // those of the request. Always less than the number of sampled tokens, unless both are 0.
  std::vector<int32_t> num_accepted_drafts;
  // Logprobs of the sampled tokens; logprobs_index[i] is the index in `logprobs` for entry i, or -1.
  std::vector<Logprobs> logprobs;
  std::vector<int32_t> logprobs_index;
  // Prompt logprobs that this step computed, one chunk per request. The scheduler appends the chunks in order.
  std::vector<std::pair<RequestId, Logprobs>> prompt_logprobs;
  // The vectors and scores of the requests with PoolingParams whose prompts are computed.
  std::vector<std::pair<RequestId, std::vector<float>>> pooled;
  // Requests whose sampling failed, for example because their logits contain NaN or +inf, with an error message. They
  // sampled nothing.
  std::vector<std::pair<RequestId, std::string>> failed;

  void Clear();
};

}  // namespace vllm
