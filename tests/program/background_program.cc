#include "tests/program/background_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vllm::app {
namespace {

// Appends what can be read from `fd` to `text`, and closes `fd` at its end.
void ReadFrom(tokenizer::UniqueFd& fd, std::string& text) {
  char buffer[4096];
  const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
  if (got > 0) {
    text.append(buffer, static_cast<size_t>(got));
  } else {
    fd = tokenizer::UniqueFd();
  }
}

}  // namespace

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& arguments,
                                     const std::map<std::string, std::string>& environment) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    ExecProgram(VLLMCLI_BINARY, arguments, environment);
  }
  close(out[1]);
  close(err[1]);
  out_ = tokenizer::UniqueFd(out[0]);
  err_ = tokenizer::UniqueFd(err[0]);
}

BackgroundProgram::~BackgroundProgram() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void BackgroundProgram::Signal(int signal_number) const {
  if (pid_ > 0) kill(pid_, signal_number);
}

bool BackgroundProgram::ReadSome() {
  if (!out_.valid() && !err_.valid()) return false;
  pollfd fds[2] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  if (poll(fds, 2, kSilenceLimitMs) <= 0) return false;
  if (fds[0].revents != 0) ReadFrom(out_, result_.out);
  if (fds[1].revents != 0) ReadFrom(err_, result_.err);
  return true;
}

bool BackgroundProgram::WaitForError(const std::string& text) {
  while (result_.err.find(text) == std::string::npos) {
    if (!ReadSome()) return false;
  }
  return true;
}

ProgramResult BackgroundProgram::Wait() {
  while (ReadSome()) {
  }
  if (out_.valid() || err_.valid()) Signal(SIGKILL);
  int wait_status = 0;
  waitpid(pid_, &wait_status, 0);
  pid_ = -1;
  result_.status = ExitStatusOf(wait_status);
  return result_;
}

}  // namespace vllm::app
