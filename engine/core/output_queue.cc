#include "engine/core/output_queue.h"

#include <utility>

#include "engine/config/errors.h"

namespace vllm {

void OutputQueue::Publish(EngineCoreOutputs& step) {
  MutexLock lock(mutex_);
  pending_.stats = step.stats;
  if (step.empty()) return;
  for (size_t i = 0; i < step.size(); ++i) {
    const size_t fresh = pending_.size();
    const size_t position = index_.FindOrInsert(step[i].request_id, fresh);
    if (position == fresh) {
      // Swaps the buffers instead of copying them, so both sides keep their capacity.
      std::swap(pending_.Add(step[i].request_id), step[i]);
    } else {
      pending_[position].Merge(step[i]);
    }
  }
  event_fd_.Set();
  changed_.NotifyAll();
}

void OutputQueue::Die(const std::string& cause) {
  MutexLock lock(mutex_);
  if (!death_cause_) death_cause_ = cause;
  event_fd_.Set();
  changed_.NotifyAll();
}

void OutputQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

void OutputQueue::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  event_fd_.Set();
  changed_.NotifyAll();
}

bool OutputQueue::Take(EngineCoreOutputs& outputs, std::chrono::steady_clock::time_point deadline) {
  outputs.Clear();
  MutexLock lock(mutex_);
  while (pending_.empty() && !death_cause_ && !closed_ && !interrupted_ &&
         std::chrono::steady_clock::now() < deadline) {
    changed_.WaitUntil(mutex_, deadline);
  }
  interrupted_ = false;
  // After Die the descriptor stays readable, because every further Take has outputs or an error to return.
  if (!death_cause_) event_fd_.Reset();
  outputs.stats = pending_.stats;
  if (pending_.empty()) {
    if (death_cause_) throw EngineDeadError(*death_cause_);
    return false;
  }
  std::swap(outputs, pending_);
  index_.Clear();
  pending_.stats = outputs.stats;
  return true;
}

std::optional<std::string> OutputQueue::death_cause() {
  MutexLock lock(mutex_);
  return death_cause_;
}

}  // namespace vllm
