// Signals: SIGINT, SIGTERM, SIGHUP (and SIGTSTP in a chat) as something the main loop polls. The handlers only count
// and wake a descriptor; while a long load runs they restore the terminal and leave. SIGPIPE is ignored: a reader that
// goes away is seen as EPIPE by OutputStream. One set a process; used from the main thread.
#pragma once

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace vllm {

// A signal asked the program to end: exit status 128 + number.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal_number)
      : std::runtime_error("interrupted by signal " + std::to_string(signal_number)), signal_number_(signal_number) {}
  int signal_number() const { return signal_number_; }

 private:
  int signal_number_;
};

// Installs the handlers. Until EnterMainLoop() a signal ends the process at once with 128 + its number. A fault on a
// mapped model file, which somebody has cut short, ends it with 3 and the file's name, the terminal as it was.
void InstallSignals();
// From here on signals are only recorded: the caller polls SignalFd() and takes them.
void EnterMainLoop();

// Readable while a signal waits.
int SignalFd();
// The oldest kind of waiting signal (SIGTERM, SIGHUP, SIGINT, SIGTSTP in this order), or 0. Takes one.
int TakeSignal();
// True while SIGINT, SIGTERM or SIGHUP waits; for work on the main thread that cannot poll.
const std::atomic<bool>& InterruptWaits();
// Throws Interrupted when SIGINT, SIGTERM or SIGHUP waits.
void ThrowIfInterrupted();

// Lets SIGTSTP be taken like the others (chat) instead of stopping the process at once.
void CatchSuspend();
// Stops the process as SIGTSTP does by default and returns when it is continued.
void SuspendProcess();

// Opens /dev/null on those of descriptors 0, 1, 2 that are closed, the wrong way round so that using them fails with
// EBADF as before, and no file opened later can take their place.
void ReserveStandardDescriptors();

}  // namespace vllm
