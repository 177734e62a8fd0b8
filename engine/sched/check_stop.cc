#include "engine/sched/check_stop.h"

#include <algorithm>

namespace vllm {

bool CheckStop(Request& request, int64_t max_num_tokens) {
  const SamplingParams& params = request.params();
  const auto finish = [&](RequestStatus status) {
    request.status = status;
    return true;
  };
  // A grammar allows a stop token only where the text is complete, and the sampler draws it before min_tokens only
  // where nothing else may follow.
  const bool has_grammar = request.core()->grammar != nullptr;
  if (request.num_output_tokens() < params.min_tokens && !has_grammar) {
    // A request of max_num_tokens tokens could never be scheduled again.
    return request.num_tokens() >= max_num_tokens && finish(RequestStatus::kFinishedLengthCapped);
  }
  const int32_t token_id = request.output_token_ids().back();
  if (!params.ignore_eos && params.eos_token_id == token_id) return finish(RequestStatus::kFinishedStopped);
  if (std::find(params.stop_token_ids.begin(), params.stop_token_ids.end(), token_id) != params.stop_token_ids.end()) {
    request.stop_token_id = token_id;
    return finish(RequestStatus::kFinishedStopped);
  }
  if (request.num_tokens() >= max_num_tokens ||
      (params.max_tokens.has_value() && request.num_output_tokens() >= *params.max_tokens)) {
    return finish(RequestStatus::kFinishedLengthCapped);
  }
  return false;
}

}  // namespace vllm
