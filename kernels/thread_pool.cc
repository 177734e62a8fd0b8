#include "kernels/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include "kernels/spin_wait.h"

namespace vllm {

ThreadPool::ThreadPool(int num_threads, const std::vector<int>& cores) {
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
  next_task_.store(0, std::memory_order_relaxed);
  num_busy_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  TakeTasks(0);
  uint32_t busy = num_busy_.load(std::memory_order_acquire);
  while (busy != 0) busy = WaitWhileEqual(num_busy_, busy);
}

void ThreadPool::TakeTasks(int thread) {
  for (;;) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) return;
    function_(context_, task, thread);
  }
}

void ThreadPool::WorkerLoop(int thread, int core) {
  if (core >= 0) PinThisThread(core);
  uint32_t seen = 0;
  for (;;) {
    seen = WaitWhileEqual(epoch_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    TakeTasks(thread);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

void PinThisThread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::vector<int> UsableCores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace vllm
