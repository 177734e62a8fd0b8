// Benchmarks the overhead of tensor-parallel ranks: an all-reduce and a barrier of two ranks, in wall time.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "engine/executor/rank_group.h"

namespace vllm {
namespace {

constexpr int kRanks = 2;
constexpr int kCallsPerRun = 1000;  // back to back, as within a step, so that ranks do not go to sleep

template <typename F>
void OnAllRanks(benchmark::State& state, F&& f) {
  RankGroup ranks(kRanks);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    ranks.Run([&](int rank) {
      for (int i = 0; i < kCallsPerRun; ++i) f(rank, ranks.communicator(rank));
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(seconds.count() / kCallsPerRun);
  }
}

void BM_AllReduce(benchmark::State& state) {
  const int64_t count = state.range(0) * 896;  // argument: number of rows; 896 is the hidden size of a 0.5B model
  std::vector<std::vector<float>> data(kRanks, std::vector<float>(static_cast<size_t>(count)));
  OnAllRanks(state, [&](int rank, Communicator& communicator) {
    communicator.AllReduce(data[static_cast<size_t>(rank)].data(), count);
  });
}
BENCHMARK(BM_AllReduce)
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(128)
    ->Iterations(20)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void BM_Barrier(benchmark::State& state) {
  OnAllRanks(state, [](int /*rank*/, Communicator& communicator) { communicator.Barrier(); });
}
BENCHMARK(BM_Barrier)->Iterations(20)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
