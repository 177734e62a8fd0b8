// Benchmarks the front end and the engine thread without a model: detokenization per token (with and without stop
// strings), adding and aborting a request, a request's round trip through the thread client, and a step of EngineCore
// and of LLMEngine.
#include <benchmark/benchmark.h>

#include "engine/core/engine_core.h"
#include "engine/core/thread_client.h"
#include "engine/frontend/incremental_detokenizer.h"
#include "engine/frontend/llm_engine.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeModel;
using testing::FakeRequest;

FakeModel FastModel() {
  FakeModel model;
  model.check_kv = false;
  model.memory_bytes = int64_t{1} << 30;
  model.block_bytes = 1 << 12;
  return model;
}

VllmConfig WideConfig() {
  VllmConfig config = FakeConfig();
  config.model.max_model_len = 8192;
  config.scheduler.max_num_seqs = 256;
  config.scheduler.max_num_batched_tokens = 4096;
  return config;
}

// Argument: number of stop strings.
void BM_DetokenizeToken(benchmark::State& state) {
  const auto tokenizer = testing::MakeByteTokenizer();
  const auto ids = testing::Bytes("The quick brown fox jumps over the lazy dog, déjà vu. ");
  SamplingParams params;
  for (int64_t i = 0; i < state.range(0); ++i) params.stop.push_back("<stop " + std::to_string(i) + ">");
  int64_t num_tokens = 0;
  while (state.KeepRunningBatch(static_cast<int64_t>(20 * ids.size()))) {
    IncrementalDetokenizer detokenizer(*tokenizer, params, {});
    for (int round = 0; round < 20; ++round) {
      for (const int32_t id : ids) {
        detokenizer.Append(std::span(&id, 1));
        benchmark::DoNotOptimize(detokenizer.GetNextOutputText(false, true));
      }
    }
    num_tokens += static_cast<int64_t>(20 * ids.size());
  }
  state.SetItemsProcessed(num_tokens);
}
BENCHMARK(BM_DetokenizeToken)->Arg(0)->Arg(1)->Arg(4);

// Measures what adding and aborting a request costs the front end while the engine thread runs.
void BM_AddAndAbort(benchmark::State& state) {
  ThreadClient client(WideConfig(), FakeExecutorFactory(FastModel()));
  RequestId id = 0;
  EngineCoreOutputs outputs;
  for (auto _ : state) {
    ++id;
    client.AddRequest(FakeRequest(id, {1, 2, 3}, 1000));
    client.AbortRequests(std::span(&id, 1), AbortUrgency::kPrompt);
  }
  client.GetOutputs(outputs, std::chrono::milliseconds(0));
}
BENCHMARK(BM_AddAndAbort);

// A request for one token passes through the input queue, a step and the output queue.
void BM_RoundTrip(benchmark::State& state) {
  ThreadClient client(WideConfig(), FakeExecutorFactory(FastModel()));
  EngineCoreOutputs outputs;
  RequestId id = 0;
  for (auto _ : state) {
    client.AddRequest(FakeRequest(++id, {1, 2, 3}, 1));
    while (!client.GetOutputs(outputs, std::chrono::milliseconds(1000))) {
    }
  }
}
BENCHMARK(BM_RoundTrip)->UseRealTime();

// A decode step with a fake model: schedules, updates the requests and collects the outputs. Argument: number of
// running requests.
void BM_EngineCoreStep(benchmark::State& state) {
  EngineCore engine_core(WideConfig(), FakeExecutorFactory(FastModel()));
  RequestId next_id = 1;
  EngineCoreOutputs outputs;
  for (auto _ : state) {
    if (!engine_core.HasUnfinishedRequests()) {
      state.PauseTiming();
      for (int64_t i = 0; i < state.range(0); ++i) engine_core.AddRequest(FakeRequest(next_id++, {1, 2, 3}, 4000));
      engine_core.Step(outputs);
      state.ResumeTiming();
    }
    engine_core.Step(outputs);
  }
}
BENCHMARK(BM_EngineCoreStep)->Arg(1)->Arg(32)->Arg(256);

// A step of LLMEngine on one thread with a fake model, from scheduling to RequestOutputs. Reports tokens per second.
// Argument: number of running requests.
void BM_LLMEngineStep(benchmark::State& state) {
  VllmConfig config = WideConfig();
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer = testing::MakeByteTokenizer();
  LLMEngine engine(config, tokenizer, MakeInprocClient(config, FakeExecutorFactory(FastModel())));
  SamplingParams params;
  params.temperature = 0.0;
  params.ignore_eos = true;
  params.max_tokens = 4000;
  params.output_kind = RequestOutputKind::kDelta;
  int64_t next_id = 0;
  int64_t num_tokens = 0;
  for (auto _ : state) {
    if (!engine.HasUnfinishedRequests()) {
      state.PauseTiming();
      for (int64_t i = 0; i < state.range(0); ++i) {
        engine.AddRequest(std::to_string(next_id++), std::vector<int32_t>{1, 2, 3}, params);
      }
      engine.Step();
      state.ResumeTiming();
    }
    num_tokens += static_cast<int64_t>(engine.Step().size());
  }
  state.SetItemsProcessed(num_tokens);
}
BENCHMARK(BM_LLMEngineStep)->Arg(1)->Arg(32)->Arg(256);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
