#include "kernels/threading/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/thread_state.h"

namespace vllm::kernels {
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

TEST(ThreadPoolTest, RunsEveryTaskOnceWithSeveralGroupsOfThreads) {
  for (const int threads : {8, 9, 17, 24}) {
    ThreadPool pool(threads, {}, WaitPolicy::kSleep);
    for (int job = 0; job < 20; ++job) {
      // With few tasks, whole groups have none.
      for (const int64_t tasks : {2, 5, 9, 100}) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
        pool.ParallelFor(tasks, [&](int64_t task, int thread) {
          ASSERT_LT(thread, threads);
          runs[static_cast<size_t>(task)].fetch_add(1, std::memory_order_relaxed);
        });
        for (const std::atomic<int>& n : runs) ASSERT_EQ(n.load(), 1);
      }
    }
  }
}

TEST(ThreadPoolTest, ThreadsTakeOverTasksOfOtherGroups) {
  ThreadPool pool(10, {}, WaitPolicy::kSleep);
  // The first task of each share of the first group waits until all other tasks have run. These tasks occupy eight
  // threads, so the other two must run the rest of the first group's shares.
  std::atomic<int64_t> num_run{0};
  pool.ParallelFor(100, [&](int64_t task, int) {
    if (task < 80 && task % 10 == 0) {
      while (num_run.load() != 92) std::this_thread::yield();
    } else {
      num_run.fetch_add(1);
    }
  });
  EXPECT_EQ(num_run.load(), 92);
}

TEST(ThreadPoolTest, RunsManyShortJobsInARow) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 5000; ++job) {
    pool.ParallelFor(3, [&](int64_t task, int) { sum.fetch_add(task + 1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(sum.load(), 5000 * 6);
}

TEST(ThreadPoolTest, SleepingWorkersWakeForTheNextJob) {
  // ThreadSanitizer starts a background thread when the program creates its first thread. Create one now, so that the
  // background thread is not counted as a worker.
  std::thread([] {}).join();
  const std::set<pid_t> before = testing_support::ThreadIds();
  ThreadPool pool(2);
  std::set<pid_t> workers = testing_support::ThreadIds();
  for (const pid_t id : before) workers.erase(id);
  ASSERT_EQ(workers.size(), 1u);
  std::atomic<int> runs{0};
  for (int i = 0; i < 3; ++i) {
    testing_support::WaitUntilThreadsSleep(workers);
    // Each task waits for the other one, so one thread cannot run both.
    std::latch both_run(2);
    pool.ParallelFor(2, [&](int64_t, int) {
      runs.fetch_add(1);
      both_run.arrive_and_wait();
    });
  }
  EXPECT_EQ(runs.load(), 6);
}

TEST(ThreadPoolTest, AnExceptionThrownByATaskReachesTheCaller) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (int64_t guilty = 0; guilty < 20; ++guilty) {
      std::atomic<int> runs{0};
      try {
        pool.ParallelFor(20, [&](int64_t task, int) {
          if (task == guilty) throw std::runtime_error("task " + std::to_string(task));
          runs.fetch_add(1);
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "task " + std::to_string(guilty));
      }
      EXPECT_LT(runs.load(), 20);
      // The pool still works.
      runs = 0;
      pool.ParallelFor(20, [&](int64_t, int) { runs.fetch_add(1); });
      EXPECT_EQ(runs.load(), 20);
    }
  }
}

TEST(ThreadPoolTest, OneOfSeveralExceptionsReachesTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.ParallelFor(50, [&](int64_t, int) { throw std::bad_alloc(); }), std::bad_alloc);
  }
}

TEST(ThreadPoolTest, CancellationSkipsTasksThatHaveNotBegun) {
  for (int threads = 1; threads <= 4; ++threads) {
    CancellationFlag flag;
    ThreadPool pool(threads);
    pool.SetCancellation(&flag);
    for (int64_t num_checks = 0; num_checks < 20; ++num_checks) {
      std::atomic<int> runs{0};
      flag.CancelAfter(num_checks);
      EXPECT_THROW(pool.ParallelFor(20, [&](int64_t, int) { runs.fetch_add(1); }), StepCancelled);
      EXPECT_EQ(runs.load(), num_checks);
      flag.Reset();
      runs = 0;
      pool.ParallelFor(20, [&](int64_t, int) { runs.fetch_add(1); });
      EXPECT_EQ(runs.load(), 20);
    }
  }
}

TEST(ThreadPoolTest, CancellationAfterTheLastTaskHasNoEffect) {
  CancellationFlag flag;
  ThreadPool pool(2);
  pool.SetCancellation(&flag);
  flag.CancelAfter(20);
  std::atomic<int> runs{0};
  pool.ParallelFor(20, [&](int64_t, int) { runs.fetch_add(1); });
  EXPECT_EQ(runs.load(), 20);
}

TEST(ThreadPoolTest, ThreadsThatSleepInsteadOfSpinningRunEveryTask) {
  ThreadPool pool(8, {}, WaitPolicy::kSleep);
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 500; ++job) {
    pool.ParallelFor(16, [&](int64_t task, int) { sum.fetch_add(task + 1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(sum.load(), 500 * 136);
}

}  // namespace
}  // namespace vllm::kernels
