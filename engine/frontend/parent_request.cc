#include "engine/frontend/parent_request.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace vllm {

ParentRequest::ParentRequest(std::string request_id, ProcessedInput input, const RequestOptions& options,
                             RequestId first_child_id, bool hold_back_later_children)
    : request_id_(std::move(request_id)),
      input_(std::move(input)),
      options_(options),
      first_child_id_(first_child_id),
      arrival_time_(std::chrono::steady_clock::now()),
      num_allowed_(hold_back_later_children ? 1 : input_.params.n) {}

EngineCoreRequestPtr ParentRequest::MakeNextChild() {
  const int64_t index = num_submitted_++;
  auto request = std::make_shared<EngineCoreRequest>();
  request->request_id = child_id(index);
  request->prompt_token_ids = input_.prompt_token_ids;
  request->sampling_params = input_.params;
  request->sampling_params.n = 1;
  // Unsigned on purpose: the seeds wrap around.
  request->sampling_params.seed = input_.params.seed.value_or(0) + static_cast<uint64_t>(index);
  if (index > 0 && request->sampling_params.prompt_logprobs) {
    // The prompt's logprobs are the same for every child: the first one's are given out, the others may use its KV.
    request->sampling_params.prompt_logprobs.reset();
  }
  request->arrival_time = arrival_time_;
  request->priority = options_.priority;
  request->cache_salt = options_.cache_salt;
  return request;
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
}

}  // namespace vllm
