// Counts the threads of this process, for tests that check that no thread is left running. Functions without state,
// except under ThreadSanitizer; any thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

namespace vllm::testing_support {

inline int64_t NumThreads() {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer starts a background thread when the program starts its first thread. Start it here, so that it does
  // not look like a leak. The first thread itself stays in /proc for a moment after the join.
  static const bool first_thread_is_over = [] {
    pid_t id = 0;
    std::thread([&id] { id = gettid(); }).join();
    while (std::filesystem::exists("/proc/self/task/" + std::to_string(id))) std::this_thread::yield();
    return true;
  }();
  (void)first_thread_is_over;
#endif
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// Waits until there are at most `expected` threads, or gives up after 100000 tries. Returns the number of threads. A
// joined thread stays in /proc for a moment after the join and must not be counted.
inline int64_t NumThreadsOnceSettled(int64_t expected) {
  for (int i = 0; i < 100000 && NumThreads() > expected; ++i) std::this_thread::yield();
  return NumThreads();
}

}  // namespace vllm::testing_support
