// OutputQueue: what the busy loop has for the front end. A slow reader's deltas merge into one entry a request, so that
// publishing never waits and memory grows with text only. One producer, one consumer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/core/event_fd.h"
#include "engine/core/request_index.h"
#include "engine/core/thread_annotations.h"
#include "engine/request/engine_core_outputs.h"

namespace vllm {

class OutputQueue {
 public:
  // Merges a step's outputs. `step` is left with unspecified entries to be cleared by its owner. Allocates only to
  // grow.
  void Publish(EngineCoreOutputs& step) EXCLUDES(mutex_);
  // The engine has failed; the first cause stays.
  void Die(const std::string& cause) EXCLUDES(mutex_);
  // Nothing more will come.
  void Close() EXCLUDES(mutex_);

  // Swaps what waits into `outputs` (whose buffers are reused); waits for it until `deadline` unless the queue is
  // closed or woken. False when nothing came. Throws EngineDeadError once dead and empty.
  bool Take(EngineCoreOutputs& outputs, std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_);
  // Ends a wait, or the next one.
  void Wake() EXCLUDES(mutex_);

  std::optional<std::string> death_cause() EXCLUDES(mutex_);
  int fd() const { return event_fd_.fd(); }

 private:
  EventFd event_fd_;  // readable while entries, a wake-up or a death wait
  Mutex mutex_;
  CondVar changed_;
  EngineCoreOutputs pending_ GUARDED_BY(mutex_);
  RequestIndex index_ GUARDED_BY(mutex_);  // request id -> its entry in pending_
  std::optional<std::string> death_cause_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace vllm
