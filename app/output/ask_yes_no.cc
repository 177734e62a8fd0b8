#include "app/output/ask_yes_no.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

constexpr int kMaxQuestions = 3;
constexpr size_t kMaxLineBytes = 1024;

// Reads one line, without its line break. Reads nothing beyond it, because what the user types next may be for a chat:
// a terminal returns at most a line per call. Returns nullopt at the end of the input.
std::optional<std::string> ReadLine() {
  std::string line;
  std::array<char, 256> buffer{};
  while (line.size() < kMaxLineBytes) {
    const ssize_t num_read = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (num_read < 0 && errno == EINTR) {
      ThrowIfInterrupted();
      continue;
    }
    if (num_read <= 0) return std::nullopt;
    line.append(buffer.data(), static_cast<size_t>(num_read));
    if (line.back() == '\n') break;
  }
  const size_t end = line.find_last_not_of(" \t\r\n");
  const size_t begin = line.find_first_not_of(" \t");
  return end == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
}

}  // namespace

bool CanAsk() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool AskYesNo(const std::string& question, bool is_yes_default) {
  OutputStream terminal(STDERR_FILENO, "standard error");
  for (int i = 0; i < kMaxQuestions; ++i) {
    terminal.Write(SafeLine(question));
    terminal.Write(SafeText(is_yes_default ? " [Y/n] " : " [y/N] "));
    std::optional<std::string> answer = ReadLine();
    if (!answer) {
      terminal.Write(SafeText("\n"));
      return false;
    }
    if (answer->empty()) return is_yes_default;
    for (char& c : *answer) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (*answer == "y" || *answer == "yes") return true;
    if (*answer == "n" || *answer == "no") return false;
  }
  return false;
}

}  // namespace vllm::app
