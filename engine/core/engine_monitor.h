// EngineMonitor: watches and steers a running engine from other threads. Everything goes through the engine's input
// queue and is done by the engine thread between two steps, so an engine that nobody watches does no work for it. Owned
// by ThreadClient; any thread, as long as the client exists.
#pragma once

#include <memory>

#include "engine/core/event_fd.h"
#include "engine/core/input_queue.h"
#include "engine/core/step_interrupt.h"
#include "engine/core/thread_annotations.h"
#include "engine/request/engine_snapshot.h"

namespace vllm {

class EngineMonitor {
 public:
  // Borrows the references.
  EngineMonitor(InputQueue& input_queue, StepInterrupt& step_interrupt)
      : input_queue_(input_queue), step_interrupt_(step_interrupt) {}

  // Asks for a snapshot. Returns at once, and does nothing if one is already on its way. Once the engine has made it,
  // SnapshotFd() is readable until the next call.
  void RequestSnapshot() EXCLUDES(mutex_);
  // Returns the last snapshot; null before the first, or if there was no memory for it.
  std::shared_ptr<const EngineSnapshot> Latest() EXCLUDES(mutex_);
  int SnapshotFd() const { return event_fd_.fd(); }

  // While admission is paused, requests that have never run keep waiting. Requests that were admitted before finish,
  // also after a preemption. Draining the engine ends the pause.
  void SetAdmissionPaused(bool paused);
  // Ends a request: the front end gets a final output with FinishReason::kAbort, as if the engine had ended it. Ignores
  // unknown ids. The id is that of a sequence (RequestSnapshot::request_id).
  void AbortRequest(RequestId request_id);

  // Called by the engine thread.
  void Publish(std::shared_ptr<const EngineSnapshot> snapshot) EXCLUDES(mutex_);

 private:
  InputQueue& input_queue_;
  StepInterrupt& step_interrupt_;
  EventFd event_fd_;
  Mutex mutex_;
  bool requested_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<const EngineSnapshot> latest_ GUARDED_BY(mutex_);
};

}  // namespace vllm
