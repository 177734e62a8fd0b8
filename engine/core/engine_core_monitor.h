// EngineCoreMonitor: the EngineMonitor of one engine. Everything goes through the engine's input queue and is done by
// the engine thread between two steps, so an engine that nobody watches does no work for it. Owned by ThreadClient; any
// thread, as long as the client exists.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/core/engine_monitor.h"
#include "engine/core/input_queue.h"
#include "engine/core/step_interrupt.h"
#include "engine/threading/event_fd.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class EngineCoreMonitor final : public EngineMonitor {
 public:
  // Borrows the references.
  EngineCoreMonitor(InputQueue& input_queue, StepInterrupt& step_interrupt)
      : input_queue_(input_queue), step_interrupt_(step_interrupt) {}

  void RequestSnapshot() override EXCLUDES(mutex_);
  std::shared_ptr<const EngineSnapshot> Latest() override EXCLUDES(mutex_);
  int SnapshotFd() const override { return event_fd_.fd(); }
  void SetAdmissionPaused(bool paused) override EXCLUDES(mutex_);
  void AbortRequest(RequestId request_id) override;

  // `on_publish` is called on the engine thread after each Publish. REQUIRES: no snapshot has been requested.
  void SetOnPublish(std::function<void()> on_publish) { on_publish_ = std::move(on_publish); }
  // Called by the engine thread.
  void Publish(std::shared_ptr<const EngineSnapshot> snapshot) EXCLUDES(mutex_);
  // Returns the last value of SetAdmissionPaused. Called by the engine thread for each message about it.
  bool TakeAdmissionPaused() EXCLUDES(mutex_);

 private:
  InputQueue& input_queue_;
  StepInterrupt& step_interrupt_;
  std::function<void()> on_publish_;  // may be empty
  EventFd event_fd_;
  Mutex mutex_;
  bool requested_ GUARDED_BY(mutex_) = false;
  bool admission_paused_ GUARDED_BY(mutex_) = false;    // the last value of SetAdmissionPaused
  bool has_paused_message_ GUARDED_BY(mutex_) = false;  // a message about it is in the queue
  std::shared_ptr<const EngineSnapshot> latest_ GUARDED_BY(mutex_);
};

}  // namespace vllm
