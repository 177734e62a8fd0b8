#include "app/terminal/output_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "app/terminal/color_policy.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

OutputStream::OutputStream(int fd, std::string name) : fd_(fd), name_(std::move(name)), is_terminal_(isatty(fd) == 1) {}

void OutputStream::WriteBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EINTR) {
      ThrowIfInterrupted();
    } else if (errno == EAGAIN) {
      pollfd wait{fd_, POLLOUT, 0};
      poll(&wait, 1, 1000);
      ThrowIfInterrupted();
    } else if (errno == EPIPE) {
      throw OutputClosed("writing " + name_ + ": the reader has closed it");
    } else {
      throw ResourceError("writing " + name_ + ": " + std::strerror(errno));
    }
  }
}

void OutputStream::Write(const SafeText& text) { WriteBytes(text.view()); }

void OutputStream::WriteLine(const SafeText& text) {
  std::string line(text.view());
  line.push_back('\n');
  WriteBytes(line);
}

void OutputStream::Write(const StyledText& text) {
  if (text.empty()) return;
  NoteUnfinishedStyle(true);
  WriteBytes(text.view());
  NoteUnfinishedStyle(false);
}

OutputStream& StandardOutput() {
  static OutputStream stream(STDOUT_FILENO, "standard output");
  return stream;
}

namespace {

bool g_quiet = false;

void WriteError(std::string_view prefix, const SafeText& text) {
  std::string line(prefix);
  line += text.view();
  line.push_back('\n');
  tokenizer::WriteAll(STDERR_FILENO, line);
}

}  // namespace

void PrintError(std::string_view text) { WriteError("vllmcli: ", SafeLine(text)); }
void PrintError(std::string_view text, std::string_view hint) {
  PrintError(text);
  if (!hint.empty()) WriteError("hint: ", SafeLine(hint));
}
void PrintWarning(std::string_view text) { WriteError("vllmcli: warning: ", SafeLine(text)); }
void PrintNote(std::string_view text) { WriteError("", SafeLine(text)); }
void PrintNoteLines(std::string_view text) { WriteError("", SafeText(text)); }
void PrintStatus(std::string_view text) {
  if (!g_quiet) WriteError("", SafeLine(text));
}
void PrintDimStatus(std::string_view text) {
  if (g_quiet) return;
  StyledText line;
  line.Append(SafeLine(text), MayColor(STDERR_FILENO) ? kDimStyle : TextStyle());
  line.LineFeed();
  tokenizer::WriteAll(STDERR_FILENO, line.view());
}
void SetQuiet(bool quiet) { g_quiet = quiet; }
bool IsQuiet() { return g_quiet; }

}  // namespace vllm::app
