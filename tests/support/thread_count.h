// How many threads this process has, for tests that say none is left.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <thread>

namespace vllm::testing_support {

inline int64_t NumThreads() {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer starts a thread of its own beside the program's first; it is no leak.
  static const bool first_thread_is_over = [] {
    std::thread([] {}).join();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return true;
  }();
  (void)first_thread_is_over;
#endif
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// A joined thread stays in /proc for a moment after the join: looks again until it is gone, so that only a thread that
// really lives counts.
inline int64_t NumThreadsOnceSettled(int64_t expected) {
  for (int look = 0; look < 100000 && NumThreads() > expected; ++look) std::this_thread::yield();
  return NumThreads();
}

}  // namespace vllm::testing_support
