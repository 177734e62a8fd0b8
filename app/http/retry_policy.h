// RetryPolicy: decides whether and when a failed request is sent again. Owned by the object that makes the requests;
// one thread at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "app/http/http_head.h"

namespace vllm::app {

class RetryPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  // Attempts without progress after which a request fails.
  static constexpr int kMaxFailures = 6;
  // A server that asks for a longer wait is not asked again.
  static constexpr std::chrono::seconds kMaxRequestedWait{300};

  // Counts a failure, unless the wait after the last one has not passed yet: several connections often fail at once.
  // `head` is that of the response, or null if the connection failed. The first connection that fails after progress
  // needs no wait and does not count. Returns false if the request should not be repeated.
  bool NoteFailure(const HttpHead* head, Clock::time_point now);
  // Forgets the failures, because data has arrived.
  void NoteProgress() {
    num_failures_ = 0;
    has_progress_ = true;
  }

  // No request may be sent before this time.
  Clock::time_point retry_at() const { return retry_at_; }

 private:
  int num_failures_ = 0;
  bool has_progress_ = false;  // since the last failure
  Clock::time_point retry_at_;
};

}  // namespace vllm::app
