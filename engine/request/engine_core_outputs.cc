#include "engine/request/engine_core_outputs.h"

namespace vllm {

void EngineCoreOutput::Clear() {
  request_id = 0;
  new_token_ids.clear();
  new_logprobs.Clear();
  prompt_logprobs.Clear();
  pooled.clear();
  finish_reason = FinishReason::kNone;
  stop_token_id.reset();
  beam_score.reset();
  cumulative_logprob = 0.0;
  error.clear();
  num_cached_tokens = 0;
  num_preemptions = 0;
  num_draft_tokens = 0;
  num_accepted_draft_tokens = 0;
  scheduled_time = {};
  first_token_time = {};
  last_token_time = {};
}

void EngineCoreOutput::Merge(const EngineCoreOutput& later) {
  new_token_ids.insert(new_token_ids.end(), later.new_token_ids.begin(), later.new_token_ids.end());
  new_logprobs.Append(later.new_logprobs);
  prompt_logprobs.Append(later.prompt_logprobs);
  pooled = later.pooled;
  finish_reason = later.finish_reason;
  stop_token_id = later.stop_token_id;
  beam_score = later.beam_score;
  cumulative_logprob = later.cumulative_logprob;
  error = later.error;
  num_cached_tokens = later.num_cached_tokens;
  num_preemptions = later.num_preemptions;
  num_draft_tokens = later.num_draft_tokens;
  num_accepted_draft_tokens = later.num_accepted_draft_tokens;
  scheduled_time = later.scheduled_time;
  first_token_time = later.first_token_time;
  last_token_time = later.last_token_time;
}

EngineCoreOutput& EngineCoreOutputs::Add(RequestId request_id) {
  if (size_ == outputs_.size()) outputs_.emplace_back();
  EngineCoreOutput& output = outputs_[size_++];
  output.Clear();
  output.request_id = request_id;
  return output;
}

}  // namespace vllm
