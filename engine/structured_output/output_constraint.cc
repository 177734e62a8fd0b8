#include "engine/structured_output/output_constraint.h"

#include <exception>
#include <stdexcept>
#include <vector>

namespace vllm {
namespace {

std::vector<int32_t> StopIds(const SamplingParams& params) {
  std::vector<int32_t> ids = params.stop_token_ids;
  if (params.eos_token_id) ids.push_back(*params.eos_token_id);
  return ids;
}

}  // namespace

OutputConstraint::OutputConstraint(const EngineCoreRequest& request)
    : matcher_(request.grammar, StopIds(request.sampling_params)),
      may_force_(!request.sampling_params.allowed_token_ids && request.sampling_params.bad_words_token_ids.empty()) {
  if (request.reasoning_format == nullptr || request.reasoning_format->kind != ReasoningFormat::Kind::kTokens) return;
  start_id_ = request.reasoning_format->start_id;
  thinking_.emplace(request.reasoning_format, request.prompt_token_ids);
}

OutputConstraint::OutputConstraint(const OutputConstraint& other)
    : matcher_(other.matcher_),
      start_id_(other.start_id_),
      thinking_(other.thinking_),
      error_(other.error_),
      may_force_(other.may_force_),
      must_stop_(other.must_stop_) {}

int32_t OutputConstraint::ThoughtStart() const {
  return thinking_ && thinking_->phase() == ReasoningPhase::kBefore && !thinking_->has_thought() ? start_id_ : -1;
}

bool OutputConstraint::Feed(int32_t token_id) {
  const bool is_answer = !thinking_ || (!thinking_->is_thinking() && token_id != ThoughtStart());
  try {
    if (is_answer && !matcher_.AcceptToken(token_id)) return false;
  } catch (const std::runtime_error& error) {
    error_ = error.what();  // an exception here would end the engine, because the token is already sampled
    return false;
  }
  if (thinking_) thinking_->Feed(token_id);
  return true;
}

bool OutputConstraint::NeedsMask() {
  try {
    return error_.empty() && !(thinking_ && thinking_->is_thinking()) && matcher_.NeedsMask();
  } catch (const GrammarLimitError&) {
    return false;  // FillBitmask reports it
  }
}

void OutputConstraint::ComputeMask() {
  const std::lock_guard lock(mutex_);
  try {
    if (NeedsMask()) matcher_.ComputeMask();
  } catch (const std::exception&) {
    // FillBitmask computes it again and reports the error.
  }
}

bool OutputConstraint::FillBitmask(TokenBitmask& bitmask) {
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw std::runtime_error(error_);
  if (thinking_ && thinking_->is_thinking()) return false;
  must_stop_ = !matcher_.FillBitmask(bitmask);
  const int32_t start = ThoughtStart();
  const auto word = static_cast<size_t>(start) / 32;
  if (start >= 0 && word < bitmask.size()) {
    bitmask[word] |= 1u << (start % 32);
    must_stop_ = false;
  }
  return true;
}

int32_t OutputConstraint::ForcedToken() {
  if (!may_force_ || !error_.empty()) return -1;
  if (thinking_ && (thinking_->is_thinking() || ThoughtStart() >= 0)) return -1;
  try {
    return matcher_.ForcedToken();
  } catch (const GrammarLimitError&) {
    return -1;  // FillBitmask reports it
  }
}

void OutputConstraint::AppendForcedAfter(int32_t token_id, size_t max_tokens, std::vector<int32_t>& forced) {
  if (!may_force_ || !error_.empty()) return;
  // Before the answer, it depends on the token whether a thought may still begin.
  if (thinking_ && thinking_->phase() != ReasoningPhase::kAnswer) return;
  const size_t size = forced.size();
  try {
    matcher_.AppendForcedAfter(token_id, max_tokens, forced);
  } catch (const GrammarLimitError&) {
    forced.resize(size);
  }
}

bool OutputConstraint::IsComplete() {
  if (!error_.empty()) throw std::runtime_error(error_);
  return !(thinking_ && thinking_->is_thinking()) && matcher_.MayEnd();
}

}  // namespace vllm
