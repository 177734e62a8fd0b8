#include "kernels/threading/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

namespace vllm::kernels {

ThreadPool::ThreadPool(int num_threads, const std::vector<int>& cores, WaitPolicy wait)
    : wait_(wait),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(num_threads))),
      num_groups_((num_threads + kThreadsPerGroup - 1) / kThreadsPerGroup),
      groups_(std::make_unique<Group[]>(static_cast<size_t>(num_groups_))) {
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      const int core = static_cast<size_t>(thread) < cores.size() ? cores[static_cast<size_t>(thread)] : -1;
      workers_.emplace_back([this, thread, core] { WorkerLoop(thread, core); });
    }
  } catch (...) {
    JoinAll();
    throw;
  }
}

ThreadPool::~ThreadPool() { JoinAll(); }

void ThreadPool::JoinAll() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::Run(int64_t num_tasks, TaskFunction function, void* context) {
  function_ = function;
  context_ = context;
  num_tasks_ = num_tasks;
  uint32_t groups_left = 0;
  for (int group = 0; group < num_groups_; ++group) {
    const int end = std::min((group + 1) * kThreadsPerGroup, num_threads());
    const int64_t count = ShareBegin(end) - ShareBegin(group * kThreadsPerGroup);
    groups_[static_cast<size_t>(group)].num_left.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
    if (count > 0) ++groups_left;
  }
  num_groups_left_.store(groups_left, std::memory_order_relaxed);
  ended_early_.store(false, std::memory_order_relaxed);
  ++job_;
  for (int share = 0; share < num_threads(); ++share) {
    const auto count = static_cast<uint64_t>(ShareBegin(share + 1) - ShareBegin(share));
    shares_[static_cast<size_t>(share)].unclaimed.store(job_ << 32 | count, std::memory_order_release);
  }
  const uint32_t epoch = epoch_.fetch_add(1, std::memory_order_release) + 1;
  epoch_.notify_all();
  RunTasks(0, epoch);
  groups_left = num_groups_left_.load(std::memory_order_acquire);
  while (groups_left != 0) groups_left = WaitWhileEqual(num_groups_left_, groups_left, wait_);
  if (!ended_early_.load(std::memory_order_relaxed)) return;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  throw StepCancelled();
}

void ThreadPool::RunTask(int64_t task, int thread) {
  if (ended_early_.load(std::memory_order_relaxed)) return;
  if (IsCancelled()) {
    ended_early_.store(true, std::memory_order_relaxed);
    return;
  }
  try {
    function_(context_, task, thread);
  } catch (...) {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
    ended_early_.store(true, std::memory_order_relaxed);
  }
}

void ThreadPool::RunTasks(int thread, uint32_t epoch) {
  for (int i = 0; i < num_groups_; ++i) {
    const int group = (thread / kThreadsPerGroup + i) % num_groups_;
    // The shares of another group are cache lines that its threads write to. Do not read them if all tasks are done.
    if (i > 0 && groups_[static_cast<size_t>(group)].num_left.load(std::memory_order_relaxed) == 0) continue;
    const int begin = group * kThreadsPerGroup, count = std::min(kThreadsPerGroup, num_threads() - begin);
    for (int share = 0; share < count; ++share) {
      if (epoch_.load(std::memory_order_relaxed) != epoch) return;
      RunTasksOf(begin + (thread % kThreadsPerGroup + share) % count, thread);
    }
  }
}

void ThreadPool::RunTasksOf(int share, int thread) {
  constexpr uint64_t kCount = 0xffffffff;
  std::atomic<uint64_t>& unclaimed = shares_[static_cast<size_t>(share)].unclaimed;
  uint64_t seen = unclaimed.load(std::memory_order_acquire);
  uint32_t num_done = 0;
  while ((seen & kCount) != 0) {
    if (!unclaimed.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    RunTask(ShareBegin(share + 1) - static_cast<int64_t>(seen & kCount), thread);
    ++num_done;
    seen = unclaimed.load(std::memory_order_acquire);
  }
  if (num_done == 0) return;
  // As soon as the last task is counted, the next job may begin.
  Group& group = groups_[static_cast<size_t>(share / kThreadsPerGroup)];
  if (group.num_left.fetch_sub(num_done, std::memory_order_acq_rel) != num_done) return;
  if (num_groups_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_groups_left_.notify_one();
}

void ThreadPool::WorkerLoop(int thread, int core) {
  if (core >= 0) PinThisThread(core);
  uint32_t seen = 0;
  for (;;) {
    seen = WaitWhileEqual(epoch_, seen, wait_);
    if (stop_.load(std::memory_order_relaxed)) return;
    RunTasks(thread, seen);
  }
}

void PinThisThread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::vector<int> UsableCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
    }
    return cpus;
  }
  // sched_getaffinity fails on machines with more than CPU_SETSIZE processors.
  for (unsigned cpu = 0; cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu) {
    cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

}  // namespace vllm::kernels
