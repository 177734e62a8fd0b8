#include "engine/worker/mask_thread.h"

#include <pthread.h>

namespace vllm {

MaskThread::MaskThread() : thread_([this] { Run(); }) {}

MaskThread::~MaskThread() {
  {
    const std::lock_guard lock(mutex_);
    must_exit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskThread::Start(const std::vector<OutputConstraint*>& constraints) {
  if (constraints.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    constraints_.assign(constraints.begin(), constraints.end());
    next_ = 0;
  }
  changed_.notify_all();
}

void MaskThread::Finish() {
  std::unique_lock lock(mutex_);
  next_ = constraints_.size();
  changed_.wait(lock, [this] { return !is_computing_; });
}

void MaskThread::Run() {
  pthread_setname_np(pthread_self(), "masks");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return must_exit_ || next_ < constraints_.size(); });
    if (must_exit_) return;
    OutputConstraint* const constraint = constraints_[next_++];
    is_computing_ = true;
    lock.unlock();
    constraint->ComputeMask();
    lock.lock();
    is_computing_ = false;
    changed_.notify_all();
  }
}

}  // namespace vllm
