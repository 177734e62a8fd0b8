#include "app/terminal/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "app/terminal/color_policy.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"

// After the standard headers, because curses.h defines macros with common names.
#include <curses.h>
#include <term.h>

namespace vllm::app {
namespace {

std::atomic<bool> g_line_is_shown{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

}  // namespace

bool TerminalHas(int fd, const char* name) {
  if (isatty(fd) != 1) return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || *terminal == '\0' || std::strcmp(terminal, "dumb") == 0) return false;
  // The terminal of readline or of a full-screen view must stay the current one.
  TERMINAL* const before = set_curterm(nullptr);
  int status = 0;
  bool has_capability = false;
  if (setupterm(terminal, fd, &status) == OK && status == 1) {
    const char* value = tigetstr(const_cast<char*>(name));
    has_capability = value != nullptr && value != reinterpret_cast<char*>(-1);
    del_curterm(cur_term);
  }
  set_curterm(before);
  return has_capability;
}

bool CanMoveCursor(int fd) { return !NoColorIsSet() && TerminalHas(fd, "el"); }

int TerminalColumns(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

int TerminalRows(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) return size.ws_row;
  return 24;
}

std::string GroupedText(int64_t count) {
  std::string text = std::to_string(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t pos = text.size(); pos > first + 3;) {
    pos -= 3;
    text.insert(pos, ",");
  }
  return text;
}

ProgressLine::ProgressLine(std::chrono::milliseconds delay)
    : enabled_(!IsQuiet() && CanMoveCursor(STDERR_FILENO)), due_(std::chrono::steady_clock::now() + delay) {}

ProgressLine::~ProgressLine() { Clear(); }

bool ProgressLine::IsDue() {
  if (!enabled_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < due_) return false;
  due_ = now + std::chrono::milliseconds(200);
  return true;
}

void ProgressLine::Show(std::string_view text) {
  if (!enabled_) return;
  // The last column stays free, because filling it would wrap the line.
  const SafeText safe(text);
  std::string line = "\r";
  line += FitColumns(safe.view(), std::max(0, TerminalColumns(STDERR_FILENO) - 1));
  line += "\x1b[K";
  shown_ = true;
  g_line_is_shown = true;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void ProgressLine::Clear() {
  if (!shown_) return;
  shown_ = false;
  EraseProgressLine();
}

void EraseProgressLine() {
  if (!g_line_is_shown.exchange(false)) return;
  constexpr std::string_view kErase = "\r\x1b[K";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kErase.data(), kErase.size());
}

}  // namespace vllm::app
