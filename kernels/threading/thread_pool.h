// ThreadPool: the threads of one rank. The owner's thread takes part in the work, and ParallelFor returns when all
// tasks are done. Idle workers spin briefly (unless `wait` is kSleep), then sleep, so an idle engine uses no CPU. Each
// thread starts with its own share of adjacent tasks, in order, and then takes tasks from the other shares, first from
// those of its group of eight threads, which often share a cache. Each group counts its unfinished tasks, so threads of
// different groups seldom write to the same cache line. A task may run on any thread, and its result must not depend on
// the thread. Only the owner's thread may call the pool.
//
// If a task throws, the job ends early: tasks that have not begun are skipped, and ParallelFor rethrows the first
// exception on the owner's thread. The pool can be used again afterwards.
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

namespace vllm::kernels {

class ThreadPool {
 public:
  // num_threads includes the owner's thread, which is thread 0. Pins worker i to CPU cores[i], if there is such an
  // entry; the owner pins its own thread. `wait` says how idle threads wait; threads that share a core must not spin.
  // Throws std::system_error if a thread cannot be created. REQUIRES: num_threads >= 1.
  explicit ThreadPool(int num_threads, const std::vector<int>& cores = {},
                      WaitPolicy wait = WaitPolicy::kSpinThenSleep);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Makes ParallelFor stop early once `flag` is set. The pool borrows the flag. Null: no cancellation. REQUIRES: no job
  // is running.
  void SetCancellation(const CancellationFlag* flag) { cancellation_ = flag; }

  // Calls f(task, thread) for each task in [0, num_tasks), with thread < num_threads(). Rethrows the first exception
  // of a task. Throws StepCancelled if tasks were skipped because the cancellation flag was set. REQUIRES: num_tasks is
  // below 2^32.
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

  // A thread's share of a job. The upper half of `unclaimed` is the job number, the lower half is the number of
  // unclaimed tasks. A thread claims a task with one compare-and-swap, which fails if another thread has claimed a task
  // in between or, thanks to the job number, if the next job has begun.
  struct alignas(64) Share {
    std::atomic<uint64_t> unclaimed{0};
  };

  // Adjacent threads, whose shares are counted together.
  struct alignas(64) Group {
    std::atomic<uint32_t> num_left{0};  // unfinished tasks of the shares
  };
  static constexpr int kThreadsPerGroup = 8;

  void Run(int64_t num_tasks, TaskFunction function, void* context);
  void WorkerLoop(int thread, int core);
  // Runs tasks until none is unclaimed, or until epoch_ is no longer `epoch`.
  void RunTasks(int thread, uint32_t epoch);
  void RunTasksOf(int share, int thread);
  // Runs a task that this thread has claimed, unless the job has ended early.
  void RunTask(int64_t task, int thread);
  bool IsCancelled() const { return cancellation_ != nullptr && cancellation_->IsCancelled(); }
  // Returns the index of the first task of a share.
  int64_t ShareBegin(int share) const { return num_tasks_ * share / num_threads(); }
  void JoinAll();

  // The current job. The owner writes these members while no task is claimed. A worker reads them after it has claimed
  // a task.
  TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t num_tasks_ = 0;

  uint64_t job_ = 0;

  const CancellationFlag* cancellation_ = nullptr;
  std::atomic<bool> ended_early_{false};  // the remaining tasks of the job are skipped
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // first exception of the job; guarded by failure_mutex_ while the job runs

  const WaitPolicy wait_;
  const std::unique_ptr<Share[]> shares_;  // [num_threads]
  const int num_groups_;
  const std::unique_ptr<Group[]> groups_;                 // [num_groups_]
  alignas(64) std::atomic<uint32_t> num_groups_left_{0};  // groups with unfinished tasks
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Pins the calling thread to one CPU. Does nothing if the OS rejects it.
void PinThisThread(int core);
// Returns the CPUs that this process may use, ascending; at least one.
std::vector<int> UsableCpus();

}  // namespace vllm::kernels
