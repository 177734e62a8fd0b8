// Benchmarks the overhead of two tensor-parallel ranks in wall time: copying inputs and outputs between them, and a
// barrier.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "engine/executor/rank_group.h"
#include "engine/layers/column_gather.h"

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

// What a layer whose inputs are split over the ranks needs besides the multiplication. Arguments: the number of rows,
// and of inputs. A 0.5B model has 896 outputs, and 896 inputs (o_proj) or 4,864 (down_proj).
void BM_GatherInputsAndOutputs(benchmark::State& state) {
  const int64_t num_rows = state.range(0), in = state.range(1), out = 896;
  const std::vector<Shard> in_columns = ShardsOfRows(in, kRanks), out_columns = ShardsOfRows(out, kRanks);
  std::vector<std::vector<float>> x(kRanks, std::vector<float>(static_cast<size_t>(num_rows * in / kRanks)));
  std::vector<std::vector<float>> y(kRanks, std::vector<float>(static_cast<size_t>(num_rows * out)));
  std::vector<std::unique_ptr<kernels::ThreadPool>> threads;
  std::vector<Workspace> workspaces(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) threads.push_back(std::make_unique<kernels::ThreadPool>(1));
  OnAllRanks(state, [&](int rank, Communicator& communicator) {
    const auto index = static_cast<size_t>(rank);
    const StepContext step{nullptr, threads[index].get(), &communicator, &workspaces[index]};
    const auto peers = communicator.Exchange({x[index].data(), in / kRanks, y[index].data()});
    benchmark::DoNotOptimize(GatherColumns(step, peers, in_columns, 0, num_rows).x);
    SendColumns(step, peers, {&out_columns[index], 1}, num_rows, out);
    communicator.Barrier();
  });
}
BENCHMARK(BM_GatherInputsAndOutputs)
    ->ArgsProduct({{1, 8, 32, 128}, {896, 4864}})
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
