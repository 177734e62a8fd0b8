// Benchmarks the linear kernels and OpenBLAS on one thread, at the shapes of a 0.5B model (hidden 896, MLP 4864,
// vocabulary 151,936) and, for a weight that stays in the cache, at 1792 x 896. The machine's limits are measured
// before each benchmark. `roofline` is the achieved rate divided by the lower of two limits: the instruction's peak
// rate, and the rate at which the weight can be read from memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine_limits.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"
#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/openblas.h"

namespace vllm {
namespace {

struct Shape {
  int64_t rows, out, in;
};

Shape ShapeOf(const benchmark::State& state) { return {state.range(0), state.range(1), state.range(2)}; }

std::vector<float> Ramp(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) * 0.01f - 1.25f;
  return values;
}

// A benchmark either rotates through copies of the weight that together exceed the caches, or uses a single copy.
constexpr int64_t kFromMemory = int64_t{256} << 20;
constexpr int64_t kInCache = 1;

// Measured before each benchmark, because on a shared host the limits change from minute to minute.
struct Limits {
  double peak, bandwidth;
};
Limits LimitsFor(Instruction instruction) { return {PeakRate(BenchIsa(), instruction), ReadBandwidth(0.5)}; }

void Report(benchmark::State& state, const Shape& shape, double weight_bytes, const Limits& limits) {
  const auto runs = static_cast<double>(state.iterations());
  const double operations = 2.0 * static_cast<double>(shape.rows * shape.out * shape.in);
  using benchmark::Counter;
  state.counters["Gop/s"] = Counter(1e-9 * operations * runs, Counter::kIsRate);
  state.counters["GB/s"] = Counter(1e-9 * weight_bytes * runs, Counter::kIsRate);
  state.counters["read"] = limits.bandwidth * 1e-9;
  if (limits.peak == 0.0) return;  // PeakRate cannot measure this instruction here
  const double seconds = std::max(operations / limits.peak, weight_bytes / limits.bandwidth);
  state.counters["roofline"] = Counter(seconds * runs, Counter::kIsRate);
  state.counters["peak"] = limits.peak * 1e-9;
}

// Calls `multiply` on each of `weights` in turn.
template <typename Weight, typename F>
void Rotate(benchmark::State& state, const std::vector<Weight>& weights, F&& multiply) {
  size_t next = 0;
  for (auto _ : state) {
    multiply(weights[next].view());
    next = (next + 1) % weights.size();
    benchmark::ClobberMemory();
  }
}

template <typename Weight>
std::vector<Weight> Copies(int64_t rotating_bytes, int64_t weight_bytes, const auto& make) {
  std::vector<Weight> weights;
  for (int64_t total = 0; total < rotating_bytes; total += weight_bytes) weights.push_back(make());
  return weights;
}

std::vector<kernels::PackedMatrix> Plain(const Shape& shape, kernels::DType dtype, int64_t rotating_bytes) {
  const std::vector<float> source = Ramp(shape.out * shape.in);
  return Copies<kernels::PackedMatrix>(rotating_bytes, shape.out * shape.in * static_cast<int64_t>(SizeOf(dtype)), [&] {
    kernels::PackedMatrix weight(shape.out, shape.in, dtype);
    weight.PackRows(reinterpret_cast<const std::byte*>(source.data()), kernels::DType::kFloat32, shape.in * 4);
    return weight;
  });
}

// Multiplies float32 rows by packed panels. Every instruction set has this kernel.
void BM_Linear(benchmark::State& state, kernels::DType dtype) {
  const Shape shape = ShapeOf(state);
  const Limits limits = LimitsFor(Instruction::kFma);
  const std::vector<kernels::PackedMatrix> weights = Plain(shape, dtype, kFromMemory);
  const std::vector<float> x = Ramp(shape.rows * shape.in);
  std::vector<float> y(static_cast<size_t>(shape.rows * shape.out));
  const kernels::Kernels& kernels = BenchKernels();
  Rotate(state, weights, [&](const kernels::PackedMatrixView& w) {
    kernels.linear(x.data(), shape.in, shape.rows, w, nullptr, y.data(), shape.out, 0, w.num_panels());
  });
  Report(state, shape, static_cast<double>(shape.out * shape.in) * static_cast<double>(SizeOf(dtype)), limits);
}

// Packs x in every iteration, as a layer does.
void BM_TilesBFloat16(benchmark::State& state, int64_t rotating_bytes) {
  const Shape shape = ShapeOf(state);
  const kernels::TileKernels& tiles = *BenchKernels().tiles;
  if (tiles.linear_bfloat16 == nullptr) {
    state.SkipWithError("this instruction set has no bfloat16 dot product");
    return;
  }
  const Limits limits = LimitsFor(BFloat16Instruction(BenchIsa()));
  const std::vector<kernels::PackedMatrix> weights = Plain(shape, kernels::DType::kBFloat16, rotating_bytes);
  const std::vector<float> x = Ramp(shape.rows * shape.in);
  const kernels::AlignedBuffer y(static_cast<size_t>(shape.rows * shape.out) * sizeof(float));  // as the engine's
  kernels::PackedActivations rows;
  Rotate(state, weights, [&](const kernels::PackedMatrixView& w) {
    const kernels::PackedActivationsView view =
        rows.BFloat16(shape.rows, shape.in, tiles.bfloat16_tile_rows, tiles.bfloat16_columns_per_unit);
    for (int64_t tile = 0; tile < view.num_tiles(); ++tile) tiles.pack_bfloat16(x.data(), shape.in, view, tile);
    tiles.linear_bfloat16(view, w, nullptr, y.as<float>(), shape.out, 0, w.num_panels());
  });
  Report(state, shape, static_cast<double>(shape.out * shape.in) * 2.0, limits);
}

void BM_TilesQuant(benchmark::State& state, const kernels::PackedQuantForm& form, int64_t rotating_bytes) {
  const Shape shape = ShapeOf(state);
  const Limits limits = LimitsFor(Int8Instruction(BenchIsa()));
  const kernels::TileKernels& tiles = *BenchKernels().tiles;
  const std::vector<uint8_t> codes(static_cast<size_t>(shape.in), 7);
  const std::vector<float> scales(static_cast<size_t>(shape.in), 0.5f);
  const auto make = [&](int64_t rows) {
    kernels::PackedQuantMatrix weight(form, shape.out, shape.in);
    for (int64_t n = 0; n < rows; ++n)
      weight.SetRow(n, {codes.data(), scales.data(), scales.data(), scales.data(), scales.data()});
    return weight;
  };
  const auto bytes = static_cast<int64_t>(make(0).size_bytes());
  const auto weights = Copies<kernels::PackedQuantMatrix>(rotating_bytes, bytes, [&] { return make(shape.out); });
  const std::vector<float> x = Ramp(shape.rows * shape.in);
  const kernels::AlignedBuffer y(static_cast<size_t>(shape.rows * shape.out) * sizeof(float));  // as the engine's
  kernels::PackedActivations rows;
  Rotate(state, weights, [&](const kernels::PackedQuantView& w) {
    const kernels::PackedActivationsView view =
        rows.Int8(shape.rows, shape.in, w.code_sums(), tiles.Int8TileRows(shape.rows, w.code_sums()));
    for (int64_t tile = 0; tile < view.num_tiles(); ++tile) tiles.pack_int8(x.data(), shape.in, view, tile);
    tiles.linear_quant(view, w, nullptr, y.as<float>(), shape.out, 0, w.num_panels());
  });
  Report(state, shape, static_cast<double>(bytes), limits);
}

void BM_OpenBlas(benchmark::State& state) {
  const Shape shape = ShapeOf(state);
  std::string error;
  const kernels::OpenBlas* blas = kernels::OpenBlas::Get(error);
  if (blas == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  const Limits limits = LimitsFor(Instruction::kFma);
  const auto copies = static_cast<size_t>(kFromMemory / (shape.out * shape.in * 4) + 1);
  const std::vector<std::vector<float>> weights(copies, Ramp(shape.out * shape.in));
  const std::vector<float> x = Ramp(shape.rows * shape.in);
  std::vector<float> y(static_cast<size_t>(shape.rows * shape.out));
  size_t next = 0;
  for (auto _ : state) {
    blas->Multiply(x.data(), shape.in, shape.rows, weights[next].data(), shape.out, shape.in, y.data(), shape.out);
    next = (next + 1) % copies;
    benchmark::ClobberMemory();
  }
  Report(state, shape, static_cast<double>(shape.out * shape.in) * 4.0, limits);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64, 512}) bench->Args({rows, 9728, 896});
  bench->Args({1, 151936, 896});
  for (const int64_t rows : {1, 16, 64, 512}) bench->Args({rows, 896, 4864});
}
BENCHMARK_CAPTURE(BM_Linear, float32, kernels::DType::kFloat32)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Linear, bfloat16, kernels::DType::kBFloat16)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_TilesBFloat16, memory, kFromMemory)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int8, kernels::kInt8Form, kFromMemory)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int8_row, kernels::kInt8RowForm, kFromMemory)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int4, kernels::kInt4Form, kFromMemory)->Apply(Shapes);

void SmallShapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 8, 16, 64, 256}) bench->Args({rows, 1792, 896});
}
BENCHMARK_CAPTURE(BM_TilesBFloat16, cache, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int8_cache, kernels::kInt8Form, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int8_row_cache, kernels::kInt8RowForm, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int4_cache, kernels::kInt4Form, kInCache)->Apply(SmallShapes);
constexpr kernels::PackedQuantForm kWideInt4 = {4, kernels::kScaleColumns, false, 8};
BENCHMARK_CAPTURE(BM_TilesQuant, int4_128_cache, kWideInt4, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, int4_128, kWideInt4, kFromMemory)->Apply(Shapes);
constexpr kernels::PackedQuantForm kQ8_0 = {8, 32}, kQ6_K = {6, 16, false, 32, nullptr, true};
constexpr kernels::PackedQuantForm kQ5_K = {5, 32, true, 0, nullptr, true};
constexpr kernels::PackedQuantForm kQ4_0 = {4, 32, false, 8}, kQ4_K = {4, 32, true, 0, nullptr, true};
BENCHMARK_CAPTURE(BM_TilesQuant, q8_0_cache, kQ8_0, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, q4_0_cache, kQ4_0, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, q4_0, kQ4_0, kFromMemory)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_TilesQuant, q4_k_cache, kQ4_K, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, q5_k_cache, kQ5_K, kInCache)->Apply(SmallShapes);
BENCHMARK_CAPTURE(BM_TilesQuant, q6_k_cache, kQ6_K, kInCache)->Apply(SmallShapes);
BENCHMARK(BM_OpenBlas)->Apply(Shapes);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
