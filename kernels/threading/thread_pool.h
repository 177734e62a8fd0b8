// ThreadPool: the threads of one rank. The owner's thread takes part in the work; ParallelFor returns when all of it is
// done. Workers spin for some microseconds between jobs, then sleep, so an idle engine uses no CPU. Each thread begins
// with its own share of neighbouring tasks, in order, and then helps with the others': which thread runs which task is
// not fixed, and tasks must not depend on it. Used by its owner's thread only.
//
// A task that throws ends the job: tasks that have not begun are skipped, and ParallelFor rethrows the first exception
// on the owner's thread. The pool can be used again afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/threading/cancellation.h"
#include "kernels/threading/spin_wait.h"

namespace vllm {

class ThreadPool {
 public:
  // num_threads >= 1 counts the caller. `cores` (may be empty): thread i keeps to cores[i]; the caller is pinned by its
  // owner. `wait` says how idle threads wait: they must not spin where threads share a core. Throws std::system_error
  // when the machine refuses a thread.
  explicit ThreadPool(int num_threads, const std::vector<int>& cores = {},
                      WaitPolicy wait = WaitPolicy::kSpinThenSleep);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // From now on ParallelFor stops early when `flag` is set. Borrowed; null: never. Call it between jobs.
  void SetCancellation(const CancellationFlag* flag) { cancellation_ = flag; }

  // Calls f(task, thread) for each task in [0, num_tasks); thread < num_threads(). Throws what a task threw, or
  // StepCancelled when tasks were skipped because the cancellation flag was set.
  template <typename F>
  void ParallelFor(int64_t num_tasks, F&& f) {
    if (workers_.empty() || num_tasks <= 1) {
      for (int64_t task = 0; task < num_tasks; ++task) {
        if (IsCancelled()) throw StepCancelled();
        f(task, 0);
      }
      return;
    }
    using Function = std::remove_reference_t<F>;
    Run(
        num_tasks, [](void* context, int64_t task, int thread) { (*static_cast<Function*>(context))(task, thread); },
        &f);
  }

 private:
  using TaskFunction = void (*)(void* context, int64_t task, int thread);

  // A thread's share of the job: the job's number (upper half) and how many of the share's tasks are unclaimed (lower
  // half). Claiming is one compare-and-swap, so that a late worker cannot take a task of a job it has not seen.
  struct alignas(64) Share {
    std::atomic<uint64_t> unclaimed{0};
  };

  void Run(int64_t num_tasks, TaskFunction function, void* context);
  void WorkerLoop(int thread, int core);
  void TakeTasks(int thread);
  void TakeTasksOf(int share, int thread);
  // Runs a claimed task, unless the job has ended early.
  void RunTask(int64_t task, int thread);
  bool IsCancelled() const { return cancellation_ != nullptr && cancellation_->IsCancelled(); }
  // The first task of a thread's share.
  int64_t ShareBegin(int share) const { return num_tasks_ * share / num_threads(); }
  void JoinAll();

  // The job. Written by the owner while no task is claimed, read by whoever has claimed one.
  TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t num_tasks_ = 0;

  uint64_t job_ = 0;

  const CancellationFlag* cancellation_ = nullptr;
  std::atomic<bool> ended_early_{false};  // the rest of the job's tasks are skipped
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // the job's first exception; guarded by failure_mutex_ while the job runs

  const WaitPolicy wait_;
  const std::unique_ptr<Share[]> shares_;  // [num_threads]
  alignas(64) std::atomic<uint32_t> num_done_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Keeps the calling thread to one core; ignored where the system refuses.
void PinThisThread(int core);
// The CPUs this process may use, ascending; at least one.
std::vector<int> UsableCpus();

}  // namespace vllm
