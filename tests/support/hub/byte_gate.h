// ByteGate: counts the bytes of bodies that servers send, and lets a test stop them at an exact byte. The servers'
// threads call Take for each piece; the test calls the other functions. Owned by the test's server. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

namespace vllm::testing_support {

class ByteGate {
 public:
  // Lets `num_bytes` more bytes pass. Then senders wait until Open, Limit or Close.
  void Limit(uint64_t num_bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = passed_ + num_bytes;
    changed_.notify_all();
  }
  // Lets all bytes pass.
  void Open() {
    const std::lock_guard lock(mutex_);
    limit_ = kUnlimited;
    changed_.notify_all();
  }
  // Ends all waits. Take then returns 0.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Waits until a byte may pass. Returns how many of `num_bytes` may, or 0 if the gate is closed.
  size_t Take(size_t num_bytes) {
    std::unique_lock lock(mutex_);
    if (passed_ >= limit_ && !closed_) {
      ++num_waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return closed_ || passed_ < limit_; });
      --num_waiting_;
    }
    if (closed_) return 0;
    const uint64_t taken = std::min<uint64_t>(num_bytes, limit_ - passed_);
    passed_ += taken;
    return static_cast<size_t>(taken);
  }

  // Takes back the passage of bytes that were not sent after all.
  void GiveBack(size_t num_bytes) {
    const std::lock_guard lock(mutex_);
    passed_ -= num_bytes;
    changed_.notify_all();
  }

  // Waits until a sender wants to send more than the limit. Returns false after a minute without one.
  bool WaitUntilASenderWaits() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return num_waiting_ > 0; });
  }

  // Returns how many bytes have passed.
  uint64_t passed() const {
    const std::lock_guard lock(mutex_);
    return passed_;
  }

 private:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t passed_ = 0;
  uint64_t limit_ = kUnlimited;
  int num_waiting_ = 0;
  bool closed_ = false;
};

}  // namespace vllm::testing_support
