#include "app/http/retry_policy.h"

#include <algorithm>
#include <utility>

namespace vllm::app {

bool RetryPolicy::NoteFailure(const HttpHead* head, Clock::time_point now) {
  constexpr std::chrono::milliseconds kFirstWait{250};
  std::optional<std::chrono::seconds> requested;
  if (head != nullptr) requested = RequestedWait(*head, std::chrono::system_clock::now());
  if (requested && *requested > kMaxRequestedWait) return false;
  // Some proxies cut every connection after a fixed number of bytes. Waiting each time would take longer than the data.
  if (std::exchange(has_progress_, false) && head == nullptr) return true;
  if (now >= retry_at_) {
    if (++num_failures_ >= kMaxFailures) return false;
    retry_at_ = now + kFirstWait * (1 << (num_failures_ - 1));
  }
  if (requested) retry_at_ = std::max(retry_at_, now + *requested);
  return true;
}

}  // namespace vllm::app
