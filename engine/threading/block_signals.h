// BlockSignals: keeps the program's signals away from a thread that is started while this object lives. They go to the
// main thread instead. Synchronous faults stay with the thread that causes them, so that the handlers of a crash run. A
// local variable of the code that starts the thread.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace vllm {

class BlockSignals {
 public:
  BlockSignals() {
    sigset_t set;
    sigfillset(&set);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &saved_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace vllm
