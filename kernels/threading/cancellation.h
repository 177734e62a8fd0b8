// CancellationFlag: how another thread asks the work under way to stop. The engine's client owns one; the threads that
// compute read it before each task of a ThreadPool. Any thread may call any member.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace vllm {

// Thrown by ThreadPool::ParallelFor when it skipped tasks because its flag was set. What the tasks were to write is
// then incomplete.
class StepCancelled : public std::runtime_error {
 public:
  StepCancelled() : std::runtime_error("the step was cancelled") {}
};

class CancellationFlag {
 public:
  void Cancel() { deadline_.store(kNow, std::memory_order_relaxed); }
  // Takes effect at `deadline`; an earlier request stays in force.
  void CancelAt(std::chrono::steady_clock::time_point deadline) {
    const int64_t wanted = deadline.time_since_epoch().count();
    int64_t current = deadline_.load(std::memory_order_relaxed);
    while (wanted < current && !deadline_.compare_exchange_weak(current, wanted, std::memory_order_relaxed)) {
    }
  }
  void Reset() { deadline_.store(kNever, std::memory_order_relaxed); }
  // For tests: IsCancelled answers false `num_checks` times, then true.
  void CancelAfter(int64_t num_checks) {
    num_checks_left_.store(num_checks, std::memory_order_relaxed);
    deadline_.store(kCounted, std::memory_order_relaxed);
  }

  // One relaxed load, unless Cancel or CancelAt was called.
  bool IsCancelled() const {
    const int64_t deadline = deadline_.load(std::memory_order_relaxed);
    if (deadline == kNever) return false;
    if (deadline == kNow) return true;
    if (deadline == kCounted) return num_checks_left_.fetch_sub(1, std::memory_order_relaxed) <= 0;
    return std::chrono::steady_clock::now().time_since_epoch().count() >= deadline;
  }
  // Whether Cancel or CancelAt was called since the last Reset.
  bool IsRequested() const { return deadline_.load(std::memory_order_relaxed) != kNever; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kNow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kCounted = kNow + 1;

  std::atomic<int64_t> deadline_{kNever};  // in ticks of the steady clock
  mutable std::atomic<int64_t> num_checks_left_{0};
};

}  // namespace vllm
