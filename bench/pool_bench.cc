// Benchmarks ThreadPool: the time of a job whose tasks do nothing, so only starting it, claiming tasks and waiting for
// the end are timed. Arguments: the number of threads, and of tasks per thread. With more threads than CPUs, idle
// threads sleep, and the owner runs most tasks itself.
#include <benchmark/benchmark.h>

#include "kernels/threading/thread_pool.h"

namespace vllm {
namespace {

void BM_EmptyJob(benchmark::State& state) {
  const auto num_threads = static_cast<int>(state.range(0));
  const int64_t num_tasks = num_threads * state.range(1);
  const std::vector<int> cpus = kernels::UsableCpus();
  const bool shared = static_cast<size_t>(num_threads) > cpus.size();
  kernels::ThreadPool threads(num_threads, shared ? std::vector<int>() : cpus,
                              shared ? kernels::WaitPolicy::kSleep : kernels::WaitPolicy::kSpinThenSleep);
  if (!shared) kernels::PinThisThread(cpus[0]);
  for (auto _ : state) {
    threads.ParallelFor(num_tasks, [](int64_t task, int /*thread*/) { benchmark::DoNotOptimize(task); });
  }
}
BENCHMARK(BM_EmptyJob)
    ->ArgsProduct({{2, 4, 8, 16, 32, 64, 96, 192}, {1, 4, 16}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
