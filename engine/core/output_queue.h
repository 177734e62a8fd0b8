// OutputQueue: outputs from the busy loop to the front end. Deltas that a slow reader has not taken are merged into one
// entry per request, so publishing never waits for the reader, and memory grows only with the number of unread tokens.
// Owned by ThreadClient, or by InprocClient::Shutdown while it drains; one producer thread, one consumer thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/core/request_index.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/threading/event_fd.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class OutputQueue {
 public:
  // Merges a step's outputs into the queue. The entries of `step` are unspecified afterwards, and its owner must clear
  // it. Allocates only if the queue grows.
  void Publish(EngineCoreOutputs& step) EXCLUDES(mutex_);
  // Reports that the engine has failed. The first cause is kept.
  void Die(const std::string& cause) EXCLUDES(mutex_);
  // Marks the end of the outputs: Take no longer waits.
  void Close() EXCLUDES(mutex_);

  // Swaps the queued outputs into `outputs`, whose buffers are reused. If there are none, waits until `deadline` at the
  // latest, but not after Die, Close or Interrupt. Returns false if there are no outputs. Throws EngineDeadError if Die
  // was called and all outputs have been taken.
  bool Take(EngineCoreOutputs& outputs, std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_);
  // Ends the current Take, or makes the next one return at once.
  void Interrupt() EXCLUDES(mutex_);

  std::optional<std::string> death_cause() EXCLUDES(mutex_);
  int fd() const { return event_fd_.fd(); }

 private:
  EventFd event_fd_;  // readable while entries or an interrupt are pending, and after Die
  Mutex mutex_;
  CondVar changed_;
  EngineCoreOutputs pending_ GUARDED_BY(mutex_);
  RequestIndex index_ GUARDED_BY(mutex_);  // request id -> its entry in pending_
  std::optional<std::string> death_cause_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace vllm
