// Benchmarks sampling from one row of 152k logits, with different sampling parameters. The logits are distributed as in
// a trained model: a few strong tokens above a normal distribution of weak ones.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/sample/sampler.h"

namespace vllm {
namespace {

constexpr int64_t kVocab = 151936;

std::vector<float> MakeRow(float spread) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(kVocab);
  for (float& x : row) x = normal(random);
  for (int i = 0; i < 40; ++i) row[random() % kVocab] = 18.0f - 0.25f * static_cast<float>(i);
  return row;
}

void Run(benchmark::State& state, const SamplingParams& params, float spread = 2.5f) {
  const std::vector<float> source = MakeRow(spread);
  std::vector<float> row = source;
  std::vector<int32_t> prompt(512), output(256);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 293 % kVocab);
  for (size_t i = 0; i < output.size(); ++i) output[i] = static_cast<int32_t>(i * 577 % kVocab);
  Sampler sampler(kVocab);
  Logprobs logprobs;
  std::string error;
  for (auto _ : state) {
    logprobs.Clear();
    benchmark::DoNotOptimize(sampler.Sample({row, &params, prompt, output}, &logprobs, error));
    // Penalties modify the row, so restore the entries that they change.
    for (int32_t id : prompt) row[static_cast<size_t>(id)] = source[static_cast<size_t>(id)];
    for (int32_t id : output) row[static_cast<size_t>(id)] = source[static_cast<size_t>(id)];
  }
}

SamplingParams Params(double temperature, int64_t top_k, double top_p) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.seed = 1;
  return params;
}

SamplingParams WithPenalties(SamplingParams params) {
  params.repetition_penalty = 1.1;
  params.frequency_penalty = 0.2;
  params.presence_penalty = 0.1;
  return params;
}

SamplingParams WithLogprobs(SamplingParams params, int64_t k) {
  params.logprobs = k;
  return params;
}

SamplingParams WithMinP(SamplingParams params, double min_p) {
  params.min_p = min_p;
  return params;
}

BENCHMARK_CAPTURE(Run, greedy, Params(0.0, 0, 1.0))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, temperature, Params(0.8, 0, 1.0))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_k_50, Params(0.8, 50, 1.0))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_p_90, Params(0.8, 0, 0.9))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_p_90_flat, Params(0.8, 0, 0.9), 1.0f)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_p_90_flatter, Params(2.0, 0, 0.9), 0.5f)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, min_p_5, WithMinP(Params(0.8, 0, 1.0), 0.05))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_k_50_top_p_90, Params(0.8, 50, 0.9))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_k_50_top_p_90_penalties, WithPenalties(Params(0.8, 50, 0.9)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, greedy_logprobs_5, WithLogprobs(Params(0.0, 0, 1.0), 5))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Run, top_p_90_penalties_logprobs_5, WithLogprobs(WithPenalties(Params(0.8, 0, 0.9)), 5))
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
