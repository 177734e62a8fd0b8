#include "app/editor/external_editor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

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
    if (!fd_.valid()) return false;
    while (!text.empty()) {
      const ssize_t written = write(fd_.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        error_number_ = errno;
        return false;
      }
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }
  const std::string& path() const { return path_; }
  std::string error() const { return std::strerror(error_number_); }

 private:
  std::string path_;
  tokenizer::UniqueFd fd_;
  int error_number_ = 0;
};

// Returns the wait status of the editor, or -1 if it could not be started.
int RunEditor(const std::string& editor, const std::string& path) {
  // The shell splits the editor's arguments, as in EDITOR="code --wait".
  const std::string command = editor + " \"$1\"";
  // Ctrl-C is for the editor. Ctrl-Z stops the editor and this process together.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction old_interrupt {};
  struct sigaction old_suspend {};
  struct sigaction stop {};
  stop.sa_handler = SIG_DFL;
  sigaction(SIGINT, &ignore, &old_interrupt);
  sigaction(SIGTSTP, &stop, &old_suspend);
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execl("/bin/sh", "sh", "-c", command.c_str(), "sh", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  bool is_ending = false;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    // SIGTERM and SIGHUP end the chat. The editor gets a chance to save its file first.
    if (InterruptWaits().load() && !is_ending) {
      is_ending = true;
      kill(pid, SIGHUP);
    }
  }
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGTSTP, &old_suspend, nullptr);
  return status;
}

}  // namespace

std::optional<std::string> EditInEditor(const std::string& text) {
  std::string editor = EnvironmentText("VISUAL");
  if (editor.empty()) editor = EnvironmentText("EDITOR");
  if (editor.empty()) editor = "vi";
  TemporaryFile file;
  const bool needs_line_end = !text.empty() && text.back() != '\n';
  if (!file.Write(text) || (needs_line_end && !file.Write("\n"))) {
    PrintError("draft file " + file.path() + ": " + file.error());
    return std::nullopt;
  }
  const int status = RunEditor(editor, file.path());
  if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    PrintError("editor " + editor + ": " +
               (status >= 0 && WIFEXITED(status) ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                                 : "did not run to its end") +
               "; the draft is unchanged; set VISUAL or EDITOR to choose another editor");
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
