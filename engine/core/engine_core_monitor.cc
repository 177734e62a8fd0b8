#include "engine/core/engine_core_monitor.h"

#include <array>
#include <utility>

namespace vllm {

void EngineCoreMonitor::RequestSnapshot() {
  {
    MutexLock lock(mutex_);
    if (requested_) return;
    requested_ = true;
    event_fd_.Reset();
  }
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kTakeSnapshot;
  input_queue_.Push(std::move(message));
}

std::shared_ptr<const EngineSnapshot> EngineCoreMonitor::Latest() {
  MutexLock lock(mutex_);
  return latest_;
}

void EngineCoreMonitor::SetAdmissionPaused(bool paused) {
  {
    MutexLock lock(mutex_);
    admission_paused_ = paused;
    // One message is enough, however often the value changes, so a caller cannot fill the queue.
    if (std::exchange(has_paused_message_, true)) return;
  }
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kSetAdmissionPaused;
  input_queue_.Push(std::move(message));
}

bool EngineCoreMonitor::TakeAdmissionPaused() {
  MutexLock lock(mutex_);
  has_paused_message_ = false;
  return admission_paused_;
}

void EngineCoreMonitor::AbortRequest(RequestId request_id) {
  const std::array<RequestId, 1> ids = {request_id};
  step_interrupt_.Abort(ids, AbortUrgency::kPrompt);
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kAbortWithOutput;
  message.ids.assign(ids.begin(), ids.end());
  input_queue_.Push(std::move(message));
}

void EngineCoreMonitor::Publish(std::shared_ptr<const EngineSnapshot> snapshot) {
  {
    MutexLock lock(mutex_);
    // The old snapshot is freed after the lock is released, by the caller's copy or by the last reader.
    latest_.swap(snapshot);
    requested_ = false;
    event_fd_.Set();
  }
  if (on_publish_) on_publish_();
}

}  // namespace vllm
