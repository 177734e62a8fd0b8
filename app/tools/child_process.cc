#include "app/tools/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

// Without a descriptor that reports the end of the process, waits look for it this often.
constexpr int kMaxWaitMs = 20;
constexpr size_t kReadBytes = 64 << 10;

// A pipe of which one end is for the child.
struct ChildPipe {
  tokenizer::UniqueFd ours;
  tokenizer::UniqueFd childs;
};

ChildPipe MakePipe(bool child_reads) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) throw ToolError(std::string("cannot make a pipe: ") + std::strerror(errno));
  ChildPipe pipe;
  pipe.ours = tokenizer::UniqueFd(fds[child_reads ? 1 : 0]);
  pipe.childs = tokenizer::UniqueFd(fds[child_reads ? 0 : 1]);
  fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

std::vector<std::string> EnvironmentOf(const ChildCommand& command) {
  std::vector<std::string> variables;
  const auto add = [&](const std::string& name, const std::string& value) {
    const bool is_overridden = std::any_of(command.environment.begin(), command.environment.end(),
                                           [&](const auto& variable) { return variable.first == name; });
    if (!is_overridden) variables.push_back(name + "=" + value);
  };
  for (const char* name : {"PATH", "HOME", "LANG", "TMPDIR"}) {
    if (const char* value = std::getenv(name)) add(name, value);
  }
  add("TERM", "dumb");
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn does not copy the memory map of a process that has a model loaded, as fork does.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int Spawn(const ChildPipe& input, const ChildPipe& output, const ChildPipe& error, std::vector<std::string> argv,
            std::vector<std::string> environment, pid_t& pid) {
    posix_spawn_file_actions_adddup2(&actions_, input.childs.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output.childs.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, error.childs.get(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_,
                             static_cast<int16_t>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID));
    return posix_spawnp(&pid, argv[0].c_str(), &actions_, &attributes_, Pointers(argv).data(),
                        Pointers(environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) {
  ChildPipe input = MakePipe(/*child_reads=*/true);
  ChildPipe output = MakePipe(/*child_reads=*/false);
  ChildPipe error = MakePipe(/*child_reads=*/false);
  const int error_number = SpawnSettings().Spawn(input, output, error, command.argv, EnvironmentOf(command), pid_);
  if (error_number != 0) {
    pid_ = 0;
    throw ToolError("cannot start " + Escape(command.argv[0]) + ": " + std::strerror(error_number));
  }
  input_ = std::move(input.ours);
  output_ = std::move(output.ours);
  error_ = std::move(error.ours);
  // glibc 2.36 declares pidfd_open without extern "C".
  end_ = tokenizer::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  Reap();
}

bool ChildProcess::HasEnded() {
  if (pid_ == 0) return true;
  // The id of the process must not be free for another one while it names the group, so the process is reaped last.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
  kill(-pid_, SIGKILL);
  Reap();
  return true;
}

void ChildProcess::Reap() {
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

bool ChildProcess::WaitForEnd(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (!HasEnded()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ended = {end_.get(), POLLIN, 0};
    poll(&ended, 1, static_cast<int>(end_.valid() ? left : std::min<int64_t>(left, kMaxWaitMs)));
  }
  return true;
}

void ChildProcess::Terminate(std::chrono::milliseconds grace) {
  if (HasEnded()) return;
  kill(-pid_, SIGTERM);
  if (WaitForEnd(grace)) return;
  kill(-pid_, SIGKILL);
  Reap();
}

bool ChildProcess::succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

std::string ChildProcess::EndText() const {
  if (WIFEXITED(status_)) return "ended with status " + std::to_string(WEXITSTATUS(status_));
  const int signal_number = WTERMSIG(status_);
  return "was ended by signal " + std::to_string(signal_number) + " (" + strsignal(signal_number) + ")";
}

bool ReadAvailable(int fd, std::string& out) {
  const size_t size = out.size();
  out.resize(size + kReadBytes);
  const ssize_t count = read(fd, out.data() + size, kReadBytes);
  out.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

bool WriteAvailable(int fd, std::string_view& bytes) {
  const ssize_t count = write(fd, bytes.data(), bytes.size());
  if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  return count >= 0 || errno == EAGAIN || errno == EINTR;
}

}  // namespace vllm::app
