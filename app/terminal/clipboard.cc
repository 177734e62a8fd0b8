#include "app/terminal/clipboard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/base64.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

// A clipboard program that takes longer is waiting for a display that does not answer.
constexpr auto kMaxProgramTime = std::chrono::seconds(3);

bool HasVariable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// Writes `text` to the pipe. Returns false if the reader closes it or takes no bytes until `end`.
bool Feed(int fd, std::string_view text, Clock::time_point end) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  while (!text.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready = {fd, POLLOUT, 0};
    if (left <= 0 || (poll(&ready, 1, static_cast<int>(left)) <= 0 && errno != EINTR)) return false;
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Runs a program with `text` as its standard input. Returns true if it exits with status 0.
bool RunWithInput(const std::vector<const char*>& arguments, std::string_view text) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return false;
  tokenizer::UniqueFd reader(fds[0]);
  tokenizer::UniqueFd writer(fds[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, reader.get(), STDIN_FILENO);
  // The program may continue in the background to serve the text; it must not keep our terminal or pipe open.
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // Another process group, so that Ctrl-C in the chat does not end it.
  posix_spawnattr_setflags(&attributes, static_cast<int16_t>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  std::vector<char*> argv;
  for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return false;
  reader = tokenizer::UniqueFd();
  const Clock::time_point end = Clock::now() + kMaxProgramTime;
  const bool is_fed = Feed(writer.get(), text, end);
  writer = tokenizer::UniqueFd();
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (!is_fed || Clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return is_fed && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns the name of the program that has taken the text, or nullopt.
std::optional<std::string> CopyWithProgram(std::string_view text) {
  if (HasVariable("WAYLAND_DISPLAY") && RunWithInput({"wl-copy"}, text)) return "wl-copy";
  if (HasVariable("DISPLAY") && RunWithInput({"xclip", "-selection", "clipboard"}, text)) return "xclip";
  if (RunWithInput({"pbcopy"}, text)) return "pbcopy";
  return std::nullopt;
}

}  // namespace

std::string CopyToClipboard(std::string_view text) {
  const std::string size = std::to_string(text.size()) + (text.size() == 1 ? " byte" : " bytes");
  const bool has_terminal = TerminalHas(STDOUT_FILENO, "el");  // not a dumb one
  const bool is_short = text.size() <= kMaxTerminalClipboardBytes;
  const std::optional<std::string> program = CopyWithProgram(text);
  if (has_terminal && is_short) {
    if (tokenizer::WriteAll(STDOUT_FILENO, "\x1b]52;c;" + tokenizer::EncodeBase64(text) + "\a") != 0) {
      throw ResourceError("cannot copy " + size + ": writing to the terminal failed");
    }
    return size + " sent to the terminal's clipboard (OSC 52)" + (program ? " and copied with " + *program : "") +
           (HasVariable("TMUX") ? "; tmux passes them on if its option set-clipboard is on" : "");
  }
  if (program) return size + " copied with " + *program;
  throw ResourceError("cannot copy " + size + ": " +
                      (has_terminal ? "too long for a terminal's clipboard (limit " +
                                          std::to_string(kMaxTerminalClipboardBytes) + " bytes), and "
                                    : "standard output is not a terminal with a clipboard, and ") +
                      "neither wl-copy, xclip nor pbcopy can take them");
}

}  // namespace vllm::app
