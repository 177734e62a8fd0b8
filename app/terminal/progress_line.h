// ProgressLine: one line on standard error that is rewritten in place and erased before anything else is printed. Does
// nothing with --quiet, or unless standard error is a terminal that can move its cursor (not TERM=dumb, no NO_COLOR).
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

// Whether the terminal on `fd` may get cursor movement, as terminfo, TERM and NO_COLOR say.
bool CanMoveCursor(int fd);
// Columns of the terminal on `fd`; 80 when it does not say.
int TerminalColumns(int fd);

// "12,000"
std::string GroupedText(int64_t count);

// Erases the line that a ProgressLine shows, if any. Async-signal-safe: for handlers that end the process.
void EraseProgressLine();

class ProgressLine {
 public:
  // The line is not due before `delay` has passed.
  explicit ProgressLine(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool enabled() const { return enabled_; }
  // True at most five times a second.
  bool IsDue();
  void Show(std::string_view text);
  // Removes the line, so that something else can be printed.
  void Clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point due_;
};

}  // namespace vllm
