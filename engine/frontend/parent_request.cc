#include "engine/frontend/parent_request.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/sched/beam_search.h"

namespace vllm {

std::vector<std::shared_ptr<EngineCoreRequest>> FanOut(const ProcessedInput& input, const RequestOptions& options,
                                                       RequestId first_child_id, SteadyTime arrival_time) {
  std::vector<std::shared_ptr<EngineCoreRequest>> requests;
  const bool is_beam_search = input.params.use_beam_search;
  for (int64_t index = 0; index < (is_beam_search ? 1 : input.params.n); ++index) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = first_child_id + static_cast<RequestId>(index);
    request->prompt_token_ids = input.prompt_token_ids;
    request->prior_output_token_ids = input.prior_output_token_ids;
    request->reasoning_format = input.reasoning_format;
    request->sampling_params = input.params;
    request->sampling_params.n = 1;
    request->sampling_params.best_of.reset();
    if (is_beam_search) request->sampling_params.logprobs = NumBeamCandidates(*input.params.beam_width);
    // Seeds are unsigned, so the sum wraps around.
    request->sampling_params.seed = input.params.seed.value_or(0) + static_cast<uint64_t>(index);
    // Prompt logprobs are equal for all sequences. Only the first computes them, so the others can use the prefix
    // cache.
    if (index > 0) request->sampling_params.prompt_logprobs.reset();
    request->arrival_time = arrival_time;
    request->priority = options.priority;
    request->cache_salt = options.cache_salt;
    request->pooling_params = input.pooling_params;
    request->token_type_ids = input.token_type_ids;
    request->lora_slot = input.lora_slot;
    request->lora_digest = input.lora_digest;
    request->interactive = options.interactive;
    request->external_req_id = input.external_req_id;
    requests.push_back(std::move(request));
  }
  return requests;
}

void JoinMetrics(const RequestMetrics& child, RequestMetrics& all) {
  const auto earliest = [](SteadyTime a, SteadyTime b) {
    if (a == SteadyTime{}) return b;
    return b == SteadyTime{} ? a : std::min(a, b);
  };
  all.scheduled_time = earliest(all.scheduled_time, child.scheduled_time);
  all.first_token_time = earliest(all.first_token_time, child.first_token_time);
  all.last_token_time = std::max(all.last_token_time, child.last_token_time);
  all.finished_time = std::max(all.finished_time, child.finished_time);
  all.num_generation_tokens += child.num_generation_tokens;
  all.num_preemptions += child.num_preemptions;
  all.num_draft_tokens += child.num_draft_tokens;
  all.num_accepted_draft_tokens += child.num_accepted_draft_tokens;
}

}  // namespace vllm
