#include "engine/core/step_interrupt.h"

#include <algorithm>

namespace vllm {

namespace {

bool Contains(std::span<const RequestId> ids, RequestId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

void StepInterrupt::BeginStep(std::span<const NumScheduledTokens> scheduled, bool has_interactive_request) {
  MutexLock lock(mutex_);
  in_step_.clear();
  for (const NumScheduledTokens& request : scheduled) in_step_.push_back(request.request_id);
  step_has_interactive_ = has_interactive_request;
  flag_.Reset();
  Decide();
}

void StepInterrupt::EndStep(bool cancelled) {
  MutexLock lock(mutex_);
  others_were_cut_ = cancelled && !AllAborted();
  in_step_.clear();
  if (!shutdown_) flag_.Reset();
}

void StepInterrupt::TakenIn(std::span<const RequestId> aborted) {
  MutexLock lock(mutex_);
  std::erase_if(pending_, [&](const PendingAbort& abort) { return Contains(aborted, abort.request_id); });
}

void StepInterrupt::Abort(std::span<const RequestId> request_ids, AbortUrgency urgency) {
  const auto deadline = std::chrono::steady_clock::now() + kMaxAbortDelay;
  MutexLock lock(mutex_);
  for (const RequestId id : request_ids) pending_.push_back({id, urgency, deadline});
  Decide();
}

void StepInterrupt::ArriveInteractive(RequestId request_id) {
  MutexLock lock(mutex_);
  arriving_.push_back(request_id);
  Decide();
}

void StepInterrupt::TakenInInteractive(RequestId request_id) {
  MutexLock lock(mutex_);
  std::erase(arriving_, request_id);
}

void StepInterrupt::Shutdown() {
  MutexLock lock(mutex_);
  shutdown_ = true;
  flag_.Cancel();
}

void StepInterrupt::Decide() {
  if (shutdown_) return flag_.Cancel();
  if (in_step_.empty()) return;
  if (!arriving_.empty() && !step_has_interactive_) return flag_.Cancel();
  if (pending_.empty()) return;
  if (AllAborted()) return flag_.Cancel();
  if (others_were_cut_) return;
  for (const PendingAbort& abort : pending_) {
    if (abort.urgency == AbortUrgency::kPrompt && Contains(in_step_, abort.request_id)) flag_.CancelAt(abort.deadline);
  }
}

bool StepInterrupt::AllAborted() const {
  return std::all_of(in_step_.begin(), in_step_.end(), [this](RequestId id) REQUIRES(mutex_) {
    return std::any_of(pending_.begin(), pending_.end(), [id](const PendingAbort& a) { return a.request_id == id; });
  });
}

}  // namespace vllm
