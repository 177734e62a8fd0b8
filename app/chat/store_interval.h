// StoreInterval: decides when to store an answer that is not complete: at its first token, then every two seconds.
// Owned by the function that waits for the answer; main thread.
#pragma once

#include <chrono>
#include <optional>

namespace vllm::app {

class StoreInterval {
 public:
  // Call when tokens have arrived. Returns true if the answer is to be stored now.
  bool IsDue() {
    constexpr auto kInterval = std::chrono::seconds(2);
    const auto now = std::chrono::steady_clock::now();
    if (stored_at_ && now < *stored_at_ + kInterval) return false;
    stored_at_ = now;
    return true;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> stored_at_;
};

}  // namespace vllm::app
