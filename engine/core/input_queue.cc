#include "engine/core/input_queue.h"

#include <utility>

namespace vllm {

void UtilityResult::Reset() {
  MutexLock lock(mutex_);
  state_ = State::kWaiting;
}

void UtilityResult::Set(const Result& result) {
  MutexLock lock(mutex_);
  state_ = State::kDone;
  result_ = result;
  changed_.NotifyAll();
}

void UtilityResult::Abandon() {
  MutexLock lock(mutex_);
  if (state_ == State::kWaiting) state_ = State::kAbandoned;
  changed_.NotifyAll();
}

bool UtilityResult::Wait(Result& result) {
  MutexLock lock(mutex_);
  while (state_ == State::kWaiting) changed_.Wait(mutex_);
  if (state_ == State::kAbandoned) return false;
  result = result_;
  return true;
}

bool InputQueue::Push(EngineCoreMessage message) {
  MutexLock lock(mutex_);
  if (message.type == EngineCoreRequestType::kAdd) {
    while (!closed_ && messages_.size() >= capacity_) not_full_.Wait(mutex_);
  }
  if (closed_) return false;
  messages_.push_back(std::move(message));
  not_empty_.NotifyOne();
  return true;
}

void InputQueue::TakeAll(std::vector<EngineCoreMessage>& messages, bool wait) {
  messages.clear();
  MutexLock lock(mutex_);
  while (wait && !closed_ && messages_.empty()) not_empty_.Wait(mutex_);
  if (messages_.empty()) return;
  messages_.swap(messages);
  not_full_.NotifyAll();
}

void InputQueue::Close() {
  std::vector<EngineCoreMessage> dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  dropped.swap(messages_);
  not_full_.NotifyAll();
  not_empty_.NotifyAll();
}

}  // namespace vllm
