#include "engine/core/draft_model_proposer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace vllm {
namespace {

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

// Returns the parameters that decide which token is drawn from the logits.
SamplingParams SamplingOf(const SamplingParams& from) {
  SamplingParams params;
  params.temperature = from.temperature;
  params.top_p = from.top_p;
  params.top_k = from.top_k;
  params.min_p = from.min_p;
  params.seed = from.seed;
  params.presence_penalty = from.presence_penalty;
  params.frequency_penalty = from.frequency_penalty;
  params.repetition_penalty = from.repetition_penalty;
  params.logit_bias = from.logit_bias;
  params.allowed_token_ids = from.allowed_token_ids;
  params.bad_words_token_ids = from.bad_words_token_ids;
  return params;
}

}  // namespace

DraftModelProposer::DraftModelProposer(const VllmConfig& draft, const ExecutorFactory& factory)
    : vocab_size_(draft.model.vocab_size), engine_(draft, factory) {}

bool DraftModelProposer::CanContinue(const DraftRequest& request) const {
  const auto is_known = [this](int32_t id) { return id >= 0 && id < vocab_size_; };
  const auto num_tokens = static_cast<int64_t>(request.prompt_token_ids.size() + request.output_token_ids.size());
  return num_tokens < engine_.ready().max_model_len && std::ranges::all_of(request.prompt_token_ids, is_known) &&
         std::ranges::all_of(request.output_token_ids, is_known);
}

void DraftModelProposer::Propose(std::span<const DraftRequest> requests, Drafts& drafts) {
  answers_.resize(std::max(answers_.size(), requests.size()));
  for (size_t i = 0; i < requests.size(); ++i) Add(requests[i], i);
  while (engine_.HasRequests()) {
    engine_.Step(outputs_);
    Collect();
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer& answer = answers_[i];
    for (size_t n = 0; n < answer.token_ids.size(); ++n) drafts.Add(answer.token_ids[n], answer.probabilities[n]);
    drafts.EndRequest();
  }
}

void DraftModelProposer::Add(const DraftRequest& request, size_t index) {
  answers_[index].token_ids.clear();
  answers_[index].probabilities.clear();
  if (!CanContinue(request)) return;
  const auto num_tokens = static_cast<int64_t>(request.prompt_token_ids.size() + request.output_token_ids.size());
  const int64_t max_tokens = std::min(request.max_drafts, engine_.ready().max_model_len - num_tokens);
  auto draft = std::make_shared<EngineCoreRequest>();
  draft->request_id = ++last_id_;
  draft->prompt_token_ids.assign(request.prompt_token_ids.begin(), request.prompt_token_ids.end());
  draft->prior_output_token_ids.assign(request.output_token_ids.begin(), request.output_token_ids.end());
  draft->sampling_params = request.params == nullptr ? Greedy() : SamplingOf(*request.params);
  SamplingParams& params = draft->sampling_params;
  params.max_tokens = static_cast<int64_t>(request.output_token_ids.size()) + max_tokens;
  params.ignore_eos = true;
  params.logprobs = 0;  // only that of the token itself
  indices_.emplace(draft->request_id, index);
  engine_.AddRequest(std::move(draft));
}

void DraftModelProposer::Collect() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const EngineCoreOutput& output = outputs_[i];
    const auto it = indices_.find(output.request_id);
    if (it == indices_.end()) continue;
    Answer& answer = answers_[it->second];
    for (size_t n = 0; n < output.new_token_ids.size() && n < output.new_logprobs.num_positions(); ++n) {
      answer.token_ids.push_back(output.new_token_ids[n]);
      answer.probabilities.push_back(std::exp(output.new_logprobs.logprobs[n * output.new_logprobs.width]));
    }
    // After an error, such as logits that are not numbers, the tokens so far are the draft.
    if (output.finish_reason != FinishReason::kNone) indices_.erase(it);
  }
}

}  // namespace vllm
