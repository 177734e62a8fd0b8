#include "app/http/retry_policy.h"

#include <algorithm>

namespace vllm::app {

bool RetryPolicy::NoteFailure(const HttpHead* head, Clock::time_point now) {
  constexpr std::chrono::milliseconds kFirstWait{250};
  std::optional<std::chrono::seconds> requested;
  if (head != nullptr) requested = RequestedWait(*head, std::chrono::system_clock::now());
  if (requested && *requested > kMaxRequestedWait) return false;
  if (now >= retry_at_) {
    if (++num_failures_ >= kMaxFailures) return false;
    retry_at_ = now + kFirstWait * (1 << (num_failures_ - 1));
  }
  if (requested) retry_at_ = std::max(retry_at_, now + *requested);
  return true;
}

}  // namespace vllm::app
