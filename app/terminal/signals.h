// Signals: turns SIGINT, SIGTERM, SIGHUP (and SIGTSTP in a chat) into events that the main loop polls. In the main
// loop, the handler of these signals only counts them and makes a descriptor readable. Before the main loop, it
// restores the terminal and ends the process. SIGWINCH has its own handler and descriptor. SIGPIPE is ignored, so that
// OutputStream gets EPIPE. The state is global; main thread, except InterruptWaits.
#pragma once

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace vllm::app {

// A signal requested the end of the program. The exit status is 128 + its number.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal_number)
      : std::runtime_error("interrupted by signal " + std::to_string(signal_number)), signal_number_(signal_number) {}
  int signal_number() const { return signal_number_; }

 private:
  int signal_number_;
};

// Installs the handlers. Until EnterMainLoop() a signal ends the process at once with status 128 + its number. A SIGBUS
// on a mapped model file that was truncated prints the file's name and ends the process with status 3. In both cases
// the handler restores the terminal first.
void InstallSignals();
// From now on signals are only recorded. The caller must poll SignalFd() and call TakeSignal().
void EnterMainLoop();

// While it exists, signals are only recorded, as after EnterMainLoop(). Work before the main loop that has files to put
// in order, such as a download, uses it and calls ThrowIfInterrupted. Main thread.
class RecordsSignals {
 public:
  RecordsSignals();
  ~RecordsSignals();
  RecordsSignals(const RecordsSignals&) = delete;
  RecordsSignals& operator=(const RecordsSignals&) = delete;

 private:
  bool was_in_main_loop_;
};

// Returns a descriptor that is readable while a signal is pending.
int SignalFd();
// Takes one pending signal, in the order SIGTERM, SIGHUP, SIGINT, SIGTSTP, and returns its number. Returns 0 if none is
// pending.
int TakeSignal();
// Returns a flag that is true while SIGINT, SIGTERM or SIGHUP is pending. Work that cannot poll, such as tokenizing,
// reads it on any thread.
const std::atomic<bool>& InterruptWaits();
// Call this after work that reads InterruptWaits has stopped early. Takes the pending signal. Throws Interrupted unless
// it is SIGINT.
void TakeInterrupt();
// Throws Interrupted if SIGINT, SIGTERM or SIGHUP is pending, but see TakesInterrupts.
void ThrowIfInterrupted();

// While it exists, ThrowIfInterrupted leaves one SIGINT to TakeSignal, so that Ctrl-C during a write to a slow terminal
// stops an answer and not the chat. Two that are pending still throw. Only one may exist; main thread.
class TakesInterrupts {
 public:
  TakesInterrupts();
  ~TakesInterrupts();
  TakesInterrupts(const TakesInterrupts&) = delete;
  TakesInterrupts& operator=(const TakesInterrupts&) = delete;
};

// From now on SIGTSTP is recorded like the other signals, instead of stopping the process at once. The chat calls this,
// so that it can restore the terminal before it stops.
void CatchSuspend();
// Stops the whole process group, as Ctrl-Z does by default. Returns when the process is continued.
void SuspendProcess();

// Returns a descriptor that is readable from a change of the terminal's size until TakeWindowChange. The first call
// installs the handler of SIGWINCH, which stays until the process ends.
int WindowChangeFd();
void TakeWindowChange();

// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no file opened later gets its number.
// The direction is the wrong one (writing for 0, reading for 1 and 2), so that using the descriptor still fails with
// EBADF.
void ReserveStandardDescriptors();

}  // namespace vllm::app
