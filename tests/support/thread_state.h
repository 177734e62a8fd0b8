// Reads the state of this process's threads from /proc, so that a test can wait until a thread sleeps instead of
// guessing how long that takes. Functions without state; any thread.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace vllm::testing_support {

inline std::set<pid_t> ThreadIds() {
  std::set<pid_t> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(static_cast<pid_t>(std::stol(entry.path().filename().string())));
  }
  return ids;
}

// Returns true if the thread sleeps in the kernel.
inline bool ThreadSleeps(pid_t id) {
  std::ifstream file("/proc/self/task/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // "ID (NAME) STATE ..."
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] == 'S';
}

// Returns once each of the threads has been seen asleep.
inline void WaitUntilThreadsSleep(const std::set<pid_t>& ids) {
  for (const pid_t id : ids) {
    while (!ThreadSleeps(id)) std::this_thread::yield();
  }
}

// Returns how many times the thread went to sleep or was preempted.
inline int64_t NumContextSwitches(pid_t id) {
  std::ifstream file("/proc/self/task/" + std::to_string(id) + "/status");
  int64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find("ctxt_switches:");
    if (colon != std::string::npos) sum += std::stoll(line.substr(line.find(':') + 1));
  }
  return sum;
}

}  // namespace vllm::testing_support
