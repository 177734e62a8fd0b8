// OutputQueue: outputs from the busy loop to the front end. Deltas that a slow reader has not taken are merged into one
// entry per request, so publishing never waits and memory grows with the text only. One producer, one consumer.
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
  // Merges a step's outputs into the queue. Leaves unspecified entries in `step`, which its owner clears. Allocates
  // only to grow.
  void Publish(EngineCoreOutputs& step) EXCLUDES(mutex_);
  // Reports that the engine has failed. The first cause is kept.
  void Die(const std::string& cause) EXCLUDES(mutex_);
  // Says that nothing more will come.
  void Close() EXCLUDES(mutex_);

  // Swaps the queued outputs into `outputs`, whose buffers are reused. Waits until `deadline` if there are none, unless
  // the queue is closed or Wake was called. Returns false if nothing came. Throws EngineDeadError once dead and empty.
  bool Take(EngineCoreOutputs& outputs, std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_);
  // Ends the current wait, or the next one.
  void Wake() EXCLUDES(mutex_);

  std::optional<std::string> death_cause() EXCLUDES(mutex_);
  int fd() const { return event_fd_.fd(); }

 private:
  EventFd event_fd_;  // readable while entries, a wake-up or a death are pending
  Mutex mutex_;
  CondVar changed_;
  EngineCoreOutputs pending_ GUARDED_BY(mutex_);
  RequestIndex index_ GUARDED_BY(mutex_);  // request id -> its entry in pending_
  std::optional<std::string> death_cause_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace vllm
