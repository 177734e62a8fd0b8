#include "app/editor/external_editor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

std::string EnvironmentText(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Deletes the file at the end of its scope.
class TemporaryFile {
 public:
  TemporaryFile() {
    // Only the user can read the run-time directory. Most systems keep it in memory.
    std::string directory = EnvironmentText("XDG_RUNTIME_DIR");
    if (directory.empty() || directory.front() != '/' || access(directory.c_str(), W_OK) != 0) {
      directory = EnvironmentText("TMPDIR");
    }
    if (directory.empty() || directory.front() != '/') directory = "/tmp";
    path_ = directory + "/vllmcli-draft-XXXXXX.md";
    fd_ = tokenizer::UniqueFd(mkostemps(path_.data(), 3, O_CLOEXEC));
    error_number_ = fd_.valid() ? 0 : errno;
  }
  ~TemporaryFile() {
    if (fd_.valid()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool Write(std::string_view text) {
    if (fd_.valid()) error_number_ = tokenizer::WriteAll(fd_.get(), text);
    return error_number_ == 0;
  }
  const std::string& path() const { return path_; }
  std::string error() const { return std::strerror(error_number_); }

 private:
  std::string path_;
  tokenizer::UniqueFd fd_;
  int error_number_ = 0;
};

// A running editor. During its lifetime this process ignores SIGINT, and SIGTSTP stops it.
class EditorProcess {
 public:
  EditorProcess(const std::string& editor, const std::string& path) {
    // The shell splits the editor's arguments, as in EDITOR="code --wait", and becomes the editor, so that the editor
    // receives SIGHUP. With env, the variable may begin with assignments.
    const std::string command = "exec env " + editor + " \"$1\"";
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    struct sigaction stop {};
    stop.sa_handler = SIG_DFL;
    sigaction(SIGINT, &ignore, &old_interrupt_);
    sigaction(SIGTSTP, &stop, &old_suspend_);
    pid_ = fork();
    if (pid_ == 0) {
      for (const int signal_number : {SIGINT, SIGPIPE, SIGXFSZ}) signal(signal_number, SIG_DFL);
      execl("/bin/sh", "sh", "-c", command.c_str(), "sh", path.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    // glibc 2.36 declares pidfd_open without extern "C".
    if (pid_ > 0) fd_ = tokenizer::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~EditorProcess() {
    if (pid_ > 0) {
      HangUp();
      while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
    }
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTSTP, &old_suspend_, nullptr);
  }
  EditorProcess(const EditorProcess&) = delete;
  EditorProcess& operator=(const EditorProcess&) = delete;

  // Returns false if the process could not be created.
  bool exists() const { return pid_ >= 0; }
  // Readable once the process has ended; -1 if the kernel has no such descriptors.
  int fd() const { return fd_.get(); }
  bool HasEnded() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) != 0) pid_ = 0;
    return pid_ == 0;
  }
  void HangUp() const { kill(pid_, SIGHUP); }
  // REQUIRES: HasEnded().
  std::string Failure() const {
    if (!WIFEXITED(status_)) return "did not run to its end";
    return WEXITSTATUS(status_) == 0 ? "" : "ended with status " + std::to_string(WEXITSTATUS(status_));
  }

 private:
  pid_t pid_ = -1;  // 0: the process has ended
  tokenizer::UniqueFd fd_;
  int status_ = -1;
  struct sigaction old_interrupt_ {};
  struct sigaction old_suspend_ {};
};

}  // namespace

std::string RunEditor(const std::string& path, const EditorWait& wait) {
  // A signal that arrives just before the wait is noticed after this time.
  constexpr int kMaxWaitMs = 100;
  std::string editor = EnvironmentText("VISUAL");
  if (editor.empty()) editor = EnvironmentText("EDITOR");
  if (editor.empty()) editor = "vi";
  EditorProcess process(editor, path);
  if (!process.exists()) return "editor " + editor + ": cannot be started: " + std::strerror(errno);
  bool is_ending = false;
  while (!process.HasEnded()) {
    // The editor gets a chance to save its file.
    if (InterruptWaits().load() && !std::exchange(is_ending, true)) process.HangUp();
    if (wait) {
      wait(process.fd(), kMaxWaitMs);
    } else {
      pollfd ended = {process.fd(), POLLIN, 0};
      poll(&ended, 1, kMaxWaitMs);
    }
  }
  const std::string failure = process.Failure();
  return failure.empty() ? "" : "editor " + editor + ": " + failure;
}

std::optional<std::string> EditInEditor(const std::string& text, const EditorWait& wait) {
  TemporaryFile file;
  const bool needs_line_end = !text.empty() && text.back() != '\n';
  if (!file.Write(text) || (needs_line_end && !file.Write("\n"))) {
    PrintError("draft file " + file.path() + ": " + file.error());
    return std::nullopt;
  }
  if (const std::string failure = RunEditor(file.path(), wait); !failure.empty()) {
    PrintError(failure + "; the draft is unchanged", "set VISUAL or EDITOR to choose another editor");
    return std::nullopt;
  }
  std::string edited;
  const tokenizer::RegularFile result = tokenizer::ReadRegularFile(file.path(), kMaxBytes, edited);
  if (!result.ok()) {
    PrintError("draft file " + file.path() + ": " + result.error);
    return std::nullopt;
  }
  // Most editors end the last line.
  if (!text.ends_with('\n') && edited.ends_with('\n')) edited.pop_back();
  return edited;
}

}  // namespace vllm::app
