#include "kernels/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <vector>

#include "tests/support/thread_state.h"

namespace vllm {
namespace {

TEST(ThreadPoolTest, RunsEveryTaskOnceForAnyNumberOfThreads) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 7, 100}) {
      std::vector<int> runs(static_cast<size_t>(tasks));
      pool.ParallelFor(tasks, [&](int64_t task, int thread) {
        ASSERT_LT(thread, threads);
        ++runs[static_cast<size_t>(task)];
      });
      for (const int n : runs) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ThreadPoolTest, ManyShortJobsInARow) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 5000; ++job) {
    pool.ParallelFor(3, [&](int64_t task, int) { sum.fetch_add(task + 1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(sum.load(), 5000 * 6);
}

TEST(ThreadPoolTest, WorkersThatSleepWakeForTheNextJob) {
  const std::set<pid_t> before = testing_support::ThreadIds();
  ThreadPool pool(2);
  std::set<pid_t> workers = testing_support::ThreadIds();
  for (const pid_t id : before) workers.erase(id);
  ASSERT_EQ(workers.size(), 1u);
  std::atomic<int> runs{0};
  for (int i = 0; i < 3; ++i) {
    testing_support::WaitUntilThreadsSleep(workers);
    pool.ParallelFor(2, [&](int64_t, int) { runs.fetch_add(1); });
  }
  EXPECT_EQ(runs.load(), 6);
}

}  // namespace
}  // namespace vllm
