// A mutex, its lock and a condition variable that clang's -Wthread-safety can check: a member marked GUARDED_BY(mutex)
// may be accessed only where the analysis sees that the mutex is held. With other compilers the annotations expand to
// nothing. Any thread may use these classes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define VLLM_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define VLLM_THREAD_ANNOTATION(x)
#endif

#define CAPABILITY(x) VLLM_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY VLLM_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) VLLM_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) VLLM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) VLLM_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) VLLM_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EXCLUDES(...) VLLM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace vllm {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may end spuriously, so callers must check their condition in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  void WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait_until(lock, deadline);
    lock.release();
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace vllm
