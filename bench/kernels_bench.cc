// The linear kernel at the shapes of a 0.5 B model (hidden 896, MLP 4864, vocabulary 151,936), one thread, beside the
// machine's limits in the same run: read bandwidth, FMA peak, and OpenBLAS.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/openblas.h"

namespace vllm {
namespace {

std::vector<float> Ramp(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) * 0.01f - 1.25f;
  return values;
}

// A second weight in turn would fit the caches; these rotate through enough copies not to.
constexpr int64_t kRotatingBytes = int64_t{256} << 20;

void Report(benchmark::State& state, int64_t rows, int64_t out, int64_t in, int64_t weight_bytes) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(rows * out * in) * runs, benchmark::Counter::kIsRate);
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * static_cast<double>(weight_bytes) * runs, benchmark::Counter::kIsRate);
}

// Arguments: rows, out, in; dtype.
void BM_Linear(benchmark::State& state, DType dtype) {
  const int64_t rows = state.range(0), out = state.range(1), in = state.range(2);
  const auto bytes = out * in * static_cast<int64_t>(SizeOf(dtype));
  const std::vector<float> source = Ramp(out * in);
  std::vector<PackedMatrix> weights;
  for (int64_t total = 0; total < kRotatingBytes; total += bytes) {
    weights.emplace_back(out, in, dtype);
    weights.back().PackRows(reinterpret_cast<const std::byte*>(source.data()), DType::kFloat32, in * 4, 0, out);
  }
  const std::vector<float> x = Ramp(rows * in);
  std::vector<float> y(static_cast<size_t>(rows * out));
  const Kernels& kernels = KernelsFor(BestIsa());
  size_t next = 0;
  for (auto _ : state) {
    const PackedMatrixView& w = weights[next].view();
    next = (next + 1) % weights.size();
    kernels.linear(x.data(), in, rows, w, nullptr, y.data(), out, 0, w.num_panels());
    benchmark::DoNotOptimize(y.data());
  }
  Report(state, rows, out, in, bytes);
  state.SetLabel(std::string(kernels.name));
}
void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 8, 64, 512}) bench->Args({rows, 4864, 896});
  bench->Args({1, 151936, 896});
  bench->Args({64, 896, 4864});
}
BENCHMARK_CAPTURE(BM_Linear, float32, DType::kFloat32)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Linear, bfloat16, DType::kBFloat16)->Apply(Shapes);

void BM_OpenBlas(benchmark::State& state) {
  const int64_t rows = state.range(0), out = state.range(1), in = state.range(2);
  std::string why;
  const OpenBlas* blas = OpenBlas::Get(why);
  if (blas == nullptr) {
    state.SkipWithError(why.c_str());
    return;
  }
  const auto copies = static_cast<size_t>(kRotatingBytes / (out * in * 4) + 1);
  const std::vector<std::vector<float>> weights(copies, Ramp(out * in));
  const std::vector<float> x = Ramp(rows * in);
  std::vector<float> y(static_cast<size_t>(rows * out));
  size_t next = 0;
  for (auto _ : state) {
    blas->Multiply(x.data(), in, rows, weights[next].data(), out, in, y.data(), out);
    next = (next + 1) % copies;
    benchmark::DoNotOptimize(y.data());
  }
  Report(state, rows, out, in, out * in * 4);
}
BENCHMARK(BM_OpenBlas)->Apply(Shapes);

// Sums a buffer larger than the caches.
void BM_ReadBandwidth(benchmark::State& state) {
  const AlignedBuffer buffer(static_cast<size_t>(kRotatingBytes));
  auto* words = buffer.as<uint64_t>();
  const auto count = buffer.size_bytes() / sizeof(uint64_t);
  for (size_t i = 0; i < count; ++i) words[i] = i;
  for (auto _ : state) {
    uint64_t sums[8] = {};
    for (size_t i = 0; i < count; i += 8) {
      for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * static_cast<double>(buffer.size_bytes()) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(BM_ReadBandwidth);

// The same kernel on a weight that stays in the first-level cache: what the FMA units give when nothing has to be
// fetched.
void BM_LinearInCache(benchmark::State& state) {
  const int64_t rows = 6, out = 64, in = 64;
  PackedMatrix weight(out, in, DType::kFloat32);
  const std::vector<float> x = Ramp(rows * in);
  std::vector<float> y(static_cast<size_t>(rows * out));
  const Kernels& kernels = KernelsFor(BestIsa());
  for (auto _ : state) {
    kernels.linear(x.data(), in, rows, weight.view(), nullptr, y.data(), out, 0, weight.view().num_panels());
    benchmark::DoNotOptimize(y.data());
  }
  Report(state, rows, out, in, out * in * 4);
}
BENCHMARK(BM_LinearInCache);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
