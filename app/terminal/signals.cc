#include "app/terminal/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "app/terminal/progress_line.h"
#include "app/terminal/terminal_modes.h"
#include "engine/model_loader/mapped_file.h"

namespace vllm::app {
namespace {

constexpr std::array<int, 4> kHandledSignals = {SIGTERM, SIGHUP, SIGINT, SIGTSTP};

std::atomic<int> g_pending[kHandledSignals.size()];
std::atomic<bool> g_interrupt_waits{false};
std::atomic<int> g_event_fd{-1};
std::atomic<int> g_window_event_fd{-1};
std::atomic<bool> g_in_main_loop{false};
bool g_takes_interrupts = false;
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void MakeReadable(int event_fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof(one));
}

void Reset(int event_fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t num_read = read(event_fd, &count, sizeof(count));
}

void OnSignal(int signal_number) {
  const int saved_errno = errno;
  if (!g_in_main_loop.load()) {
    EraseProgressLine();
    RestoreTerminal();
    _exit(128 + signal_number);
  }
  for (size_t i = 0; i < kHandledSignals.size(); ++i) {
    if (kHandledSignals[i] == signal_number) g_pending[i].fetch_add(1);
  }
  if (signal_number != SIGTSTP) g_interrupt_waits = true;
  MakeReadable(g_event_fd.load());
  errno = saved_errno;
}

void OnWindowChange(int) {
  const int saved_errno = errno;
  MakeReadable(g_window_event_fd.load());
  errno = saved_errno;
}

void Install(int signal_number) {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a signal must interrupt a blocked read or write
  sigaction(signal_number, &action, nullptr);
}

void WriteError(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void OnBusError(int signal_number, siginfo_t* info, void* /*context*/) {
  EraseProgressLine();
  RestoreTerminal();
  if (const char* path = MappedFile::PathAt(info->si_addr)) {
    WriteError("vllmcli: tensor file ");
    WriteError(path);
    WriteError(": was truncated while in use\n");
    _exit(3);
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

void InstallSignals() {
  struct sigaction bus_error {};
  bus_error.sa_sigaction = OnBusError;
  sigemptyset(&bus_error.sa_mask);
  bus_error.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &bus_error, nullptr);
  g_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);
  // Ignored so that a write beyond the file size limit fails with EFBIG.
  signal(SIGXFSZ, SIG_IGN);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    // A signal that is already ignored stays ignored, for example SIGHUP under nohup.
    struct sigaction current {};
    sigaction(signal_number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) Install(signal_number);
  }
}

void EnterMainLoop() { g_in_main_loop = true; }

RecordsSignals::RecordsSignals() : was_in_main_loop_(g_in_main_loop.exchange(true)) {}

RecordsSignals::~RecordsSignals() { g_in_main_loop = was_in_main_loop_; }

int SignalFd() { return g_event_fd; }

const std::atomic<bool>& InterruptWaits() { return g_interrupt_waits; }

int TakeSignal() {
  // Cleared before the counts are read, so that a signal that arrives now is not missed.
  g_interrupt_waits = false;
  Reset(g_event_fd.load());
  int signal_number = 0;
  bool more = false;
  for (size_t i = 0; i < kHandledSignals.size(); ++i) {
    if (signal_number == 0 && g_pending[i].load() > 0) {
      signal_number = kHandledSignals[i];
      g_pending[i].fetch_sub(1);
    }
    const bool is_pending = g_pending[i].load() > 0;
    more = more || is_pending;
    if (is_pending && kHandledSignals[i] != SIGTSTP) g_interrupt_waits = true;
  }
  if (more) MakeReadable(g_event_fd.load());
  return signal_number;
}

void TakeInterrupt() {
  const int signal_number = TakeSignal();
  if (signal_number != SIGINT) throw Interrupted(signal_number);
}

TakesInterrupts::TakesInterrupts() { g_takes_interrupts = true; }

TakesInterrupts::~TakesInterrupts() { g_takes_interrupts = false; }

void ThrowIfInterrupted() {
  for (size_t i = 0; i < kHandledSignals.size(); ++i) {
    if (kHandledSignals[i] == SIGTSTP) continue;
    const int num_taken_later = kHandledSignals[i] == SIGINT && g_takes_interrupts ? 1 : 0;
    if (g_pending[i].load() > num_taken_later) throw Interrupted(kHandledSignals[i]);
  }
}

void CatchSuspend() { Install(SIGTSTP); }

void SuspendProcess() {
  signal(SIGTSTP, SIG_DFL);
  kill(0, SIGTSTP);  // the whole foreground group, as the terminal does
  Install(SIGTSTP);
}

int WindowChangeFd() {
  if (g_window_event_fd.load() < 0) {
    g_window_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action {};
    action.sa_handler = OnWindowChange;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGWINCH, &action, nullptr);
  }
  return g_window_event_fd;
}

void TakeWindowChange() { Reset(g_window_event_fd.load()); }

void ReserveStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != fd) close(opened);
  }
}

}  // namespace vllm::app
