#include "engine/frontend/request_state.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <variant>

namespace vllm {
namespace {

void AppendPositions(const Logprobs& from, size_t num_positions, Logprobs& to) {
  num_positions = std::min(num_positions, from.num_positions());
  if (num_positions == 0) return;
  const auto num_entries = static_cast<std::ptrdiff_t>(num_positions * from.width);
  to.width = from.width;
  to.token_ids.insert(to.token_ids.end(), from.token_ids.begin(), from.token_ids.begin() + num_entries);
  to.logprobs.insert(to.logprobs.end(), from.logprobs.begin(), from.logprobs.begin() + num_entries);
  to.ranks.insert(to.ranks.end(), from.ranks.begin(), from.ranks.begin() + static_cast<std::ptrdiff_t>(num_positions));
}

}  // namespace

RequestState::RequestState(int64_t index, const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
                           std::span<const int32_t> prior_output_token_ids, SteadyTime arrival_time,
                           const tokenizer::Tokenizer* tokenizer)
    : index_(index),
      kind_(params.output_kind),
      include_stop_(params.include_stop_str_in_output),
      is_constrained_(params.structured_outputs &&
                      params.structured_outputs->kind != StructuredOutputsParams::Kind::kToolCalls) {
  if (tokenizer != nullptr && params.detokenize) {
    detokenizer_.emplace(*tokenizer, params, prompt_token_ids);
    detokenizer_->AppendPrior(prior_output_token_ids);
  }
  metrics_.arrival_time = arrival_time;
}

bool RequestState::SetConstraint(const EngineCoreRequest& request) {
  constraint_.emplace(request);
  for (const int32_t id : request.prior_output_token_ids) {
    if (!constraint_->Feed(id)) return false;
  }
  return true;
}

void RequestState::CheckComplete(std::span<const int32_t> new_ids) {
  if (!constraint_) {
    if (is_constrained_ && finished()) valid_ = false;  // it ended before its grammar was compiled
    return;
  }
  bool is_accepted = true;
  for (const int32_t id : new_ids) is_accepted = is_accepted && constraint_->Feed(id);
  if (!finished()) return;
  // A stop string cuts the text.
  const bool is_cut = is_constrained_ && std::holds_alternative<std::string>(stop_reason_);
  try {
    valid_ = is_accepted && !is_cut && constraint_->IsComplete();
  } catch (const std::runtime_error&) {
    valid_ = false;  // the text exceeds a limit of the grammar
  }
  // Text around calls is free, so nothing says whether it is complete.
  if (!is_constrained_ && *valid_) valid_.reset();
}

void RequestState::Update(const EngineCoreOutput& output) {
  std::span<const int32_t> new_ids = output.new_token_ids;
  size_t num_taken = new_ids.size();
  FinishReason reason = output.finish_reason;
  if (detokenizer_) {
    // The token that stopped the request is part of the output's token ids. By default, it is not part of the text.
    const bool hide_last = reason == FinishReason::kStop && !include_stop_ && !new_ids.empty();
    const size_t num_appended = detokenizer_->Append(new_ids.first(new_ids.size() - (hide_last ? 1 : 0)));
    if (detokenizer_->stop_string() != nullptr) {
      num_taken = num_appended;
    } else {
      if (hide_last) detokenizer_->AppendHidden();
      if (reason != FinishReason::kNone) detokenizer_->Finish();
    }
  }
  if (detokenizer_ && detokenizer_->stop_string() != nullptr && reason != FinishReason::kError) {
    reason = FinishReason::kStop;
    stop_reason_ = *detokenizer_->stop_string();
  } else if (output.stop_token_id) {
    stop_reason_ = *output.stop_token_id;
  }
  reason_ = reason;

  token_ids_.insert(token_ids_.end(), new_ids.begin(), new_ids.begin() + static_cast<std::ptrdiff_t>(num_taken));
  const size_t first_new = logprobs_.num_positions();
  AppendPositions(output.new_logprobs, num_taken, logprobs_);
  for (size_t i = first_new; i < logprobs_.num_positions(); ++i) {
    cumulative_logprob_ += static_cast<double>(logprobs_.logprobs[i * logprobs_.width]);
  }
  if (output.beam_score) {
    beam_score_ = output.beam_score;
    cumulative_logprob_ = output.cumulative_logprob;
  }
  metrics_.scheduled_time = output.scheduled_time;
  metrics_.first_token_time = output.first_token_time;
  metrics_.last_token_time = output.last_token_time;
  metrics_.num_preemptions = output.num_preemptions;
  metrics_.num_draft_tokens = output.num_draft_tokens;
  metrics_.num_accepted_draft_tokens = output.num_accepted_draft_tokens;
  metrics_.num_generation_tokens += static_cast<int64_t>(num_taken);
  if (finished()) metrics_.finished_time = std::chrono::steady_clock::now();
  CheckComplete(new_ids.first(num_taken));
}

void RequestState::Finish(FinishReason reason) {
  reason_ = reason;
  if (detokenizer_) detokenizer_->Finish();
  metrics_.finished_time = std::chrono::steady_clock::now();
  CheckComplete({});
}

void RequestState::FillOutput(CompletionOutput& output) {
  output.index = index_;
  output.cumulative_logprob = cumulative_logprob_;
  output.score = beam_score_;
  output.finish_reason = reason_;
  output.stop_reason = stop_reason_;
  output.valid = valid_;
  const bool delta = kind_ == RequestOutputKind::kDelta;
  output.text = detokenizer_ ? detokenizer_->GetNextOutputText(finished(), delta) : std::string_view();
  if (delta) {
    output.token_ids.swap(token_ids_);
    std::swap(output.logprobs, logprobs_);
    token_ids_.clear();
    logprobs_.Clear();
  } else {
    output.token_ids = token_ids_;
    output.logprobs = logprobs_;
  }
}

}  // namespace vllm
