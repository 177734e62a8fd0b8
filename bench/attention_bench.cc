// Benchmarks the attention of one layer on one thread, with the heads of a 0.5B model (14 query heads, 2 KV heads), an
// 8B model (32 and 8) and a model without grouped-query attention (16 and 16). head_dim is 64. Measures the prefill of
// a whole prompt, and a decode step of sequences that share no blocks or share those of a prefix.
//
// Counters: `fraction of peak` is the rate of multiplies and adds for scores and values, divided by the CPU's peak FMA
// rate. `GB/s` counts K and V once per sequence. `read` is the read bandwidth of memory. The two limits are measured
// once per run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine_limits.h"
#include "engine/layers/attention/attention.h"
#include "kernels/isa/kernels_for.h"

namespace vllm {
namespace {

constexpr int64_t kHeadDim = 64;
constexpr int64_t kBlockSize = 16;

struct Heads {
  int64_t queries, kv;
};

// One or more attention layers. The decode benchmarks rotate through them, so that a step reads K and V from memory, as
// in a model.
struct Layers {
  SingleRankCommunicator communicator;
  kernels::ThreadPool threads{1};
  Workspace workspace;
  StepContext step;
  Heads heads;
  std::vector<KVCacheSpec> specs;
  KVCache cache;
  std::vector<Attention> layers;
  AttentionMetadata metadata;
  std::vector<std::vector<int32_t>> tables;
  std::vector<float> rows, out;

  Layers(Heads h, kernels::KVDType dtype, int64_t num_layers, int64_t num_blocks)
      : heads(h), specs(static_cast<size_t>(num_layers), KVCacheSpec{h.kv, kHeadDim, 0}) {
    cache = KVCache({.attention = specs}, num_blocks, kBlockSize, dtype);
    step = {&kernels::KernelsFor(BenchIsa()), &threads, &communicator, &workspace};
    for (size_t i = 0; i < specs.size(); ++i) {
      layers.emplace_back(step, i, specs[i], heads.queries, 0.125f);
      for (auto* buffer : {cache.key(i), cache.value(i)}) {
        // These bytes are a finite value in every element type.
        std::fill_n(static_cast<std::byte*>(buffer), num_blocks * heads.kv * cache.Layout(i).KeyBytes(),
                    std::byte{0x11});
      }
    }
    metadata.groups.resize(1);
  }

  int64_t Stride() const { return (heads.queries + 2 * heads.kv) * kHeadDim; }

  // Sets up a step of `num_sequences` sequences, each with `num_rows` rows after `context_len` tokens. The first
  // `shared` tokens have the same blocks in all sequences.
  void SetStep(int64_t num_sequences, int64_t num_rows, int64_t context_len, int64_t shared, bool cascade) {
    const int64_t total = context_len + num_rows;
    const int64_t blocks = (total + kBlockSize - 1) / kBlockSize;
    int32_t next = 1;
    for (int64_t s = 0; s < num_sequences; ++s) {
      std::vector<int32_t>& table = tables.emplace_back();
      for (int64_t b = 0; b < blocks; ++b) {
        table.push_back(s > 0 && (b + 1) * kBlockSize <= shared ? tables[0][static_cast<size_t>(b)] : next++);
      }
    }
    AttentionGroup& group = metadata.groups[0];
    for (int64_t s = 0; s < num_sequences; ++s) {
      const std::vector<int32_t>& table = tables[static_cast<size_t>(s)];
      group.sequences.push_back({s * num_rows, num_rows, context_len, table.data()});
      for (int64_t position = context_len; position < total; ++position) {
        metadata.rows.push_back({static_cast<int64_t>(metadata.rows.size()), position});
        group.slot_mapping.push_back(table[static_cast<size_t>(position / kBlockSize)] * kBlockSize +
                                     position % kBlockSize);
      }
    }
    const int64_t partitions = (total + kernels::kKVPartition - 1) / kernels::kKVPartition * num_sequences;
    metadata.partials = kernels::AlignedBuffer(
        static_cast<size_t>(partitions * heads.queries * kernels::PartialFloats(kHeadDim)) * sizeof(float));
    group.plan = AttentionPlan({.block_size = kBlockSize,
                                .num_kv_heads = heads.kv,
                                .max_sequences = num_sequences,
                                .max_slots = partitions,
                                .max_partitions = partitions,
                                .share = cascade});  // num_queries_per_kv is 1, so cascade shares whenever it can
    const auto floats = static_cast<size_t>(num_sequences * num_rows * Stride());
    rows.resize(floats);
    out.resize(floats);
    for (size_t i = 0; i < floats; ++i) rows[i] = static_cast<float>(i * 2654435761u % 1009) * 0.002f - 1.0f;
  }

  void Step(size_t layer) {
    const int64_t queries = heads.queries * kHeadDim, kv = heads.kv * kHeadDim;
    metadata.groups[0].plan.Make(metadata.groups[0].sequences);
    layers[layer].Forward(metadata, cache, rows.data(), rows.data() + queries, rows.data() + queries + kv, Stride(),
                          out.data(), queries);
  }
};

// `seen` is the number of positions that a row attends to, summed over all rows. `kv_tokens` is the number of tokens
// whose K and V are counted as read.
void Report(benchmark::State& state, const Layers& layers, double seen, double kv_tokens) {
  using benchmark::Counter;
  const auto runs = static_cast<double>(state.iterations());
  const double operations = 4.0 * seen * static_cast<double>(layers.heads.queries * kHeadDim) * runs;
  const double block_bytes = static_cast<double>(layers.cache.Layout(0).BlockBytes());
  state.counters["Gop/s"] = Counter(1e-9 * operations, Counter::kIsRate);
  static const double peak = PeakRate(BenchIsa(), Instruction::kFma);
  static const double bandwidth = ReadBandwidth(0.5);
  state.counters["fraction of peak"] = Counter(operations / peak, Counter::kIsRate);
  state.counters["GB/s"] = Counter(1e-9 * kv_tokens / kBlockSize * block_bytes * runs, Counter::kIsRate);
  state.counters["read"] = 1e-9 * bandwidth;
}

void Prefill(benchmark::State& state, Heads heads, kernels::KVDType dtype) {
  const int64_t length = state.range(0);
  Layers layers(heads, dtype, 1, length / kBlockSize + 2);
  layers.SetStep(1, length, 0, 0, true);
  for (auto _ : state) layers.Step(0);
  const auto n = static_cast<double>(length);
  Report(state, layers, n * (n + 1.0) / 2.0, n);
}

void Decode(benchmark::State& state, Heads heads, kernels::KVDType dtype, bool shared, bool cascade) {
  const int64_t sequences = state.range(0), context = state.range(1);
  // As many layers as fit into 200 MiB of K and V, but at least 1 and at most 24.
  const int64_t blocks = (shared ? 1 : sequences) * (context / kBlockSize + 2) + 2 * sequences;
  const kernels::KVCacheLayout layout{dtype, kBlockSize, heads.kv, kHeadDim};
  const int64_t num_layers = std::clamp<int64_t>((int64_t{200} << 20) / (blocks * layout.BlockBytes()), 1, 24);
  Layers layers(heads, dtype, num_layers, blocks);
  layers.SetStep(sequences, 1, context, shared ? context / kernels::kKVPartition * kernels::kKVPartition : 0, cascade);
  size_t layer = 0;
  for (auto _ : state) {
    layers.Step(layer);
    layer = (layer + 1) % static_cast<size_t>(num_layers);
  }
  const auto seen = static_cast<double>(sequences * (context + 1));
  Report(state, layers, seen, seen);
}

void RegisterAll() {
  struct Named {
    const char* name;
    Heads heads;
  };
  for (const auto& [name, heads] : {Named{"14x2", {14, 2}}, Named{"32x8", {32, 8}}, Named{"16x16", {16, 16}}}) {
    for (const kernels::KVDType dtype : {kernels::KVDType::kFloat32, kernels::KVDType::kBFloat16,
                                         kernels::KVDType::kFloat16, kernels::KVDType::kInt8}) {
      const std::string suffix = std::string("/") + name + "/" + std::string(ToString(dtype));
      benchmark::RegisterBenchmark(("Prefill" + suffix).c_str(), Prefill, heads, dtype)->Arg(512)->Arg(2048)->Arg(8192);
      benchmark::RegisterBenchmark(("Decode" + suffix).c_str(), Decode, heads, dtype, false, true)
          ->ArgsProduct({{1, 8, 32}, {2048, 8192}});
      benchmark::RegisterBenchmark(("SharedPrefix" + suffix).c_str(), Decode, heads, dtype, true, true)
          ->ArgsProduct({{2, 8, 32}, {2048, 8192}});
      benchmark::RegisterBenchmark(("SharedPrefixReadByEach" + suffix).c_str(), Decode, heads, dtype, true, false)
          ->ArgsProduct({{2, 8, 32}, {2048, 8192}});
    }
  }
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  vllm::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
