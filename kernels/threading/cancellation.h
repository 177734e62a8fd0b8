// CancellationFlag: lets another thread stop the running step. The StepInterrupt of an engine client owns it, and the
// compute threads check it before each task of a ThreadPool. Any thread may call any member.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace vllm::kernels {

// ThreadPool::ParallelFor throws this if it skipped tasks because the flag was set. The results of the job are then
// incomplete.
class StepCancelled : public std::runtime_error {
 public:
  StepCancelled() : std::runtime_error("the step was cancelled") {}
};

class CancellationFlag {
 public:
  void Cancel() { deadline_.store(kNow, std::memory_order_relaxed); }
  // Cancels at `deadline`, unless an earlier deadline is already set.
  void CancelAt(std::chrono::steady_clock::time_point deadline) {
    const int64_t requested = deadline.time_since_epoch().count();
    int64_t current = deadline_.load(std::memory_order_relaxed);
    while (requested < current && !deadline_.compare_exchange_weak(current, requested, std::memory_order_relaxed)) {
    }
  }
  void Reset() { deadline_.store(kNever, std::memory_order_relaxed); }
  // For tests: IsCancelled returns false `num_checks` times, then true.
  void CancelAfter(int64_t num_checks) {
    num_checks_left_.store(num_checks, std::memory_order_relaxed);
    deadline_.store(kCounted, std::memory_order_relaxed);
  }

  // Costs one relaxed load, unless a deadline is set.
  bool IsCancelled() const {
    const int64_t deadline = deadline_.load(std::memory_order_relaxed);
    if (deadline == kNever) return false;
    if (deadline == kNow) return true;
    if (deadline == kCounted) return num_checks_left_.fetch_sub(1, std::memory_order_relaxed) <= 0;
    return std::chrono::steady_clock::now().time_since_epoch().count() >= deadline;
  }
  // Returns true if the flag or a deadline has been set since the last Reset, even if the deadline has not passed.
  bool IsRequested() const { return deadline_.load(std::memory_order_relaxed) != kNever; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kNow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kCounted = kNow + 1;

  std::atomic<int64_t> deadline_{kNever};  // ticks of the steady clock, or kNever, kNow or kCounted
  mutable std::atomic<int64_t> num_checks_left_{0};
};

}  // namespace vllm::kernels
