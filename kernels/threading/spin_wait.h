// SpinWait: waits for an atomic to leave a value, first by spinning, then asleep.
#pragma once

#include <atomic>
#include <cstdint>

namespace vllm {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// About 20 us at some tens of cycles a pause: longer than the gap between two layers of a step, shorter than anyone
// notices.
inline constexpr int kSpinIterations = 2000;

// kSleep is for threads that share a core: one that spins keeps the core from the one it waits for.
enum class WaitPolicy : uint8_t { kSpinThenSleep, kSleep };

// Returns the new value, with acquire ordering.
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

}  // namespace vllm
