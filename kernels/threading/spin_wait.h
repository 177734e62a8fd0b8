// WaitWhileEqual: waits until the value of an atomic changes, first by spinning (unless the policy is kSleep), then by
// sleeping. Any thread. The caller owns the atomic. A sleeping thread sees a change only after notify_one or
// notify_all.
#pragma once

#include <atomic>
#include <cstdint>

namespace vllm::kernels {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// About 20 us on an x86-64 CPU whose pause takes a few tens of cycles. That is longer than the gap between two layers
// of a step, and too short to use noticeable CPU time.
inline constexpr int kSpinIterations = 2000;

// Use kSleep for threads that share a core: a spinning thread would slow down the thread that it waits for.
enum class WaitPolicy : uint8_t { kSpinThenSleep, kSleep };

// Waits while `value` equals `old`. Returns the new value, with acquire ordering.
inline uint32_t WaitWhileEqual(const std::atomic<uint32_t>& value, uint32_t old,
                               WaitPolicy policy = WaitPolicy::kSpinThenSleep) {
  const int num_spins = policy == WaitPolicy::kSleep ? 0 : kSpinIterations;
  for (int i = 0; i < num_spins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    CpuRelax();
  }
  uint32_t now;
  while ((now = value.load(std::memory_order_acquire)) == old) value.wait(old, std::memory_order_acquire);
  return now;
}

}  // namespace vllm::kernels
