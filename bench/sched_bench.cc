// Benchmarks the scheduler: a step of decoding requests, and a request that is added and aborted, with or without being
// scheduled in between.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "engine/sched/scheduler.h"

namespace vllm {
namespace {

EngineCoreRequestPtr MakeRequest(RequestId id, int64_t num_prompt_tokens, int64_t max_tokens) {
  auto request = std::make_shared<EngineCoreRequest>();
  request->request_id = id;
  request->prompt_token_ids.assign(static_cast<size_t>(num_prompt_tokens), static_cast<int32_t>(id));
  request->sampling_params.max_tokens = max_tokens;
  return request;
}

Scheduler MakeScheduler(int64_t max_num_seqs) {
  SchedulerConfig config;
  config.max_num_seqs = max_num_seqs;
  config.max_num_batched_tokens = 1 << 20;
  CacheConfig cache;
  cache.num_blocks = 1 << 18;
  return Scheduler(config, cache, 1 << 20);
}

void BM_ScheduleDecode(benchmark::State& state) {
  const int64_t num_requests = state.range(0);
  Scheduler scheduler = MakeScheduler(num_requests);
  for (int64_t i = 0; i < num_requests; ++i) scheduler.AddRequest(MakeRequest(i + 1, 100, 1 << 19), nullptr);
  ModelRunnerOutput runner;
  EngineCoreOutputs outputs;
  int64_t num_steps = 0;
  for (auto _ : state) {
    const SchedulerOutput& output = scheduler.Schedule();
    state.PauseTiming();
    runner.Clear();
    for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) {
      runner.request_ids.push_back(scheduled.request_id);
      runner.sampled_token_ids.push_back(7);
      runner.sampled_offsets.push_back(runner.sampled_token_ids.size());
    }
    outputs.Clear();
    scheduler.UpdateFromOutput(runner, outputs);
    if (++num_steps % 8192 == 0) state.SkipWithError("too many steps (limit 8191)");
    state.ResumeTiming();
  }
}
BENCHMARK(BM_ScheduleDecode)->Arg(1)->Arg(32)->Arg(256)->Iterations(4000)->Unit(benchmark::kMicrosecond);

void BM_DecodeStep(benchmark::State& state) {
  const int64_t num_requests = state.range(0);
  Scheduler scheduler = MakeScheduler(num_requests);
  for (int64_t i = 0; i < num_requests; ++i) scheduler.AddRequest(MakeRequest(i + 1, 100, 1 << 19), nullptr);
  ModelRunnerOutput runner;
  EngineCoreOutputs outputs;
  for (auto _ : state) {
    const SchedulerOutput& output = scheduler.Schedule();
    runner.Clear();
    for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) {
      runner.request_ids.push_back(scheduled.request_id);
      runner.sampled_token_ids.push_back(7);
      runner.sampled_offsets.push_back(runner.sampled_token_ids.size());
    }
    outputs.Clear();
    scheduler.UpdateFromOutput(runner, outputs);
  }
}
BENCHMARK(BM_DecodeStep)->Arg(1)->Arg(32)->Arg(256)->Iterations(4000)->Unit(benchmark::kMicrosecond);

void BM_AddAndAbort(benchmark::State& state) {
  Scheduler scheduler = MakeScheduler(8);
  // 1,000 other requests wait in the queue ahead of the measured one.
  for (RequestId id = 1; id <= 1000; ++id) scheduler.AddRequest(MakeRequest(id, 100, 100), nullptr);
  const RequestId id = 1'000'000;
  const EngineCoreRequestPtr request = MakeRequest(id, state.range(0), 1000);
  for (auto _ : state) {
    scheduler.AddRequest(request, nullptr);
    scheduler.FinishRequests(std::span(&id, 1), FinishReason::kAbort);
  }
}
BENCHMARK(BM_AddAndAbort)->Arg(100)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void BM_AdmitAndAbort(benchmark::State& state) {
  Scheduler scheduler = MakeScheduler(8);
  RequestId id = 0;
  for (auto _ : state) {
    ++id;
    scheduler.AddRequest(MakeRequest(id, state.range(0), 100), nullptr);
    benchmark::DoNotOptimize(scheduler.Schedule());
    scheduler.FinishRequests(std::span(&id, 1), FinishReason::kAbort);
  }
}
BENCHMARK(BM_AdmitAndAbort)->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
