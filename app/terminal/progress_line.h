// ProgressLine: one line on standard error that is rewritten in place. Does nothing unless standard error is a terminal
// that can move its cursor (not TERM=dumb, no NO_COLOR). Main thread.
#pragma once

#include <chrono>
#include <string_view>

namespace vllm {

// Whether the terminal on `fd` may get cursor movement, as terminfo, TERM and NO_COLOR say.
bool CanMoveCursor(int fd);
// Columns of the terminal on `fd`; 80 when it does not say.
int TerminalColumns(int fd);

class ProgressLine {
 public:
  ProgressLine();
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
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace vllm
