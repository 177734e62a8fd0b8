#include "engine/core/engine_monitor.h"

#include <array>
#include <utility>

namespace vllm {

void EngineMonitor::RequestSnapshot() {
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

std::shared_ptr<const EngineSnapshot> EngineMonitor::Latest() {
  MutexLock lock(mutex_);
  return latest_;
}

void EngineMonitor::SetAdmissionPaused(bool paused) {
  EngineCoreMessage message;
  message.type = paused ? EngineCoreRequestType::kPauseAdmission : EngineCoreRequestType::kResumeAdmission;
  input_queue_.Push(std::move(message));
}

void EngineMonitor::AbortRequest(RequestId request_id) {
  const std::array<RequestId, 1> ids = {request_id};
  step_interrupt_.Abort(ids, AbortUrgency::kPrompt);
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kAbortWithOutput;
  message.ids.assign(ids.begin(), ids.end());
  input_queue_.Push(std::move(message));
}

void EngineMonitor::Publish(std::shared_ptr<const EngineSnapshot> snapshot) {
  MutexLock lock(mutex_);
  // The old snapshot is freed after the lock is released, by the caller's copy or by the last reader.
  latest_.swap(snapshot);
  requested_ = false;
  event_fd_.Set();
}

}  // namespace vllm
