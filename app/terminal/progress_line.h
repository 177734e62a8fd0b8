// ProgressLine: one line on standard error that is redrawn in place and erased before anything else is printed. Does
// nothing with --quiet, or if standard error is not a terminal that can move its cursor (TERM=dumb, NO_COLOR). Owned by
// the object that shows progress; one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

// Returns true if `fd` is a terminal that has the string capability `name` of terminfo, such as "cup". TERM=dumb has
// none.
bool TerminalHas(int fd, const char* name);
// Returns true if `fd` is a terminal that can move its cursor and erase, and the user has not set NO_COLOR. MayColor
// decides about colors.
bool CanMoveCursor(int fd);
// Returns the number of columns of the terminal on `fd`, or 80 if unknown.
int TerminalColumns(int fd);
// Returns the number of rows of the terminal on `fd`, or 24 if unknown.
int TerminalRows(int fd);

// Returns a number with thousands separators, such as "12,000".
std::string GroupedText(int64_t count);

// Erases the line that a ProgressLine shows, if any. Async-signal-safe, for handlers that end the process.
void EraseProgressLine();

class ProgressLine {
 public:
  // The line is first due after `delay`.
  explicit ProgressLine(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool enabled() const { return enabled_; }
  // Returns true if the line should be drawn now, at most five times per second.
  bool IsDue();
  void Show(std::string_view text);
  // Erases the line, so that something else can be printed.
  void Clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point due_;
};

}  // namespace vllm::app
