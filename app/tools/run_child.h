// RunChild: runs a program to its end with text as its standard input, and returns what it wrote. The time and the
// output are limited, and every wait ends. Keeps no state; main thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app/tools/child_process.h"
#include "app/tools/poll_hook.h"

namespace vllm::app {

struct ChildLimits {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  size_t max_output_bytes = size_t{64} << 10;  // the rest of the output is read and discarded
};

struct ChildResult {
  enum class End : uint8_t {
    kEnded,          // on its own; see end_text
    kTimedOut,       // after ChildLimits::timeout
    kInterrupted,    // a hook returned false
    kTooMuchOutput,  // more than kMaxReadBytes
  };
  End end = End::kEnded;
  bool succeeded = false;  // ended with status 0
  std::string end_text;    // such as "ended with status 3"
  std::string output;      // the beginning of standard output
  int64_t num_omitted_bytes = 0;
  std::string error_output;  // the end of standard error, at most kMaxErrorBytes

  static constexpr int64_t kMaxReadBytes = int64_t{16} << 20;
  static constexpr size_t kMaxErrorBytes = 4 << 10;
};

// Throws ToolError if the program cannot be started, and what the hooks throw. When the call ends, by return or by an
// exception, no process of the program's group is left.
ChildResult RunChild(const ChildCommand& command, std::string_view input, const ChildLimits& limits,
                     std::span<const PollHook> hooks);

}  // namespace vllm::app
