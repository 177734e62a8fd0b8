// Tests DataParallelClient with engines that run a fake model: tokens, aborts, failures, shutdown and the monitor.
#include "engine/data_parallel/data_parallel_client.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/frontend/llm_engine.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/thread_count.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutor;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;
using testing_support::NumThreads;
using testing_support::NumThreadsOnceSettled;

VllmConfig DataParallelConfig(int64_t num_engines) {
  VllmConfig config = FakeConfig();
  config.parallel.data_parallel_size = num_engines;
  return config;
}

// Returns a factory that gives the engine with this rank another model than the others.
ExecutorFactory FactoryWith(int64_t rank, FakeModel special, FakeModel others = {}) {
  return [=](const VllmConfig& config) {
    const bool is_special = config.parallel.data_parallel_rank == rank;
    return LoadedExecutor{std::make_unique<FakeExecutor>(config, is_special ? special : others), {}};
  };
}

FakeModel WithMemory(int64_t memory_bytes) {
  FakeModel model;
  model.memory_bytes = memory_bytes;
  model.block_bytes = 1024;
  return model;
}
FakeModel Endless(RequestId request_id) {
  FakeModel model;
  model.endless_request = request_id;
  return model;
}
FakeModel ThrowingAt(int64_t step) {
  FakeModel model;
  model.throw_at_step = step;
  return model;
}
FakeModel ThrowingAtLoad() {
  FakeModel model;
  model.throw_at_load = true;
  return model;
}

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

void AwaitReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  while (poll(&entry, 1, -1) != 1) {
  }
}

struct Answers {
  std::map<RequestId, std::vector<int32_t>> token_ids;
  std::map<RequestId, FinishReason> finished;

  void Add(const EngineCoreOutputs& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto& ids = token_ids[outputs[i].request_id];
      ids.insert(ids.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
      if (outputs[i].finish_reason != FinishReason::kNone) {
        EXPECT_TRUE(finished.emplace(outputs[i].request_id, outputs[i].finish_reason).second);
      }
    }
  }
};

// Reads outputs until `num_finished` requests have finished.
Answers ReadUntil(EngineCoreClient& client, size_t num_finished) {
  Answers answers;
  EngineCoreOutputs outputs;
  while (answers.finished.size() < num_finished) {
    if (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
  }
  return answers;
}

std::string ReadUntilDead(EngineCoreClient& client) {
  EngineCoreOutputs outputs;
  try {
    while (true) client.GetOutputs(outputs, 1h);
  } catch (const EngineDeadError& error) {
    return error.what();
  }
}

// Request `id` of a mix: many share prefixes, and every second one is random.
EngineCoreRequestPtr MixedRequest(RequestId id) {
  std::vector<int32_t> prompt(static_cast<size_t>(id % 3) * 20, static_cast<int32_t>(id % 3));
  for (RequestId i = 0; i < 1 + id % 40; ++i) prompt.push_back(static_cast<int32_t>((id * 7 + i * 3) % 200));
  SamplingParams params;
  params.temperature = id % 2 == 0 ? 0.0 : 1.0;
  params.ignore_eos = true;
  return FakeRequest(id, std::move(prompt), static_cast<int64_t>(1 + id % 30), params);
}

TEST(DataParallelClientTest, TokensAreThoseOfASingleEngine) {
  for (const int64_t num_engines : {1, 2, 3}) {
    DataParallelClient client(DataParallelConfig(num_engines), FakeExecutorFactory());
    std::vector<EngineCoreRequestPtr> requests;
    for (RequestId id = 1; id <= 200; ++id) requests.push_back(MixedRequest(id));
    for (const EngineCoreRequestPtr& request : requests) client.AddRequest(request);
    const Answers answers = ReadUntil(client, requests.size());
    for (const EngineCoreRequestPtr& request : requests) {
      EXPECT_EQ(answers.token_ids.at(request->request_id),
                FakeGenerate(*request, *request->sampling_params.max_tokens, FakeConfig().model.vocab_size));
    }
    for (int rank = 0; rank < num_engines; ++rank) EXPECT_EQ(client.router().outstanding(rank), 0);
  }
}

TEST(DataParallelClientTest, RequestsRunOnAllEngines) {
  std::array<std::atomic<int>, 3> num_steps{};
  const ExecutorFactory factory = [&](const VllmConfig& config) {
    FakeModel model;
    model.on_step = [&num_steps, rank = config.parallel.data_parallel_rank](int64_t, const SchedulerOutput&) {
      ++num_steps[static_cast<size_t>(rank)];
    };
    return LoadedExecutor{std::make_unique<FakeExecutor>(config, model), {}};
  };
  DataParallelClient client(DataParallelConfig(3), factory);
  for (RequestId id = 1; id <= 30; ++id) client.AddRequest(MixedRequest(id));
  ReadUntil(client, 30);
  for (const auto& steps : num_steps) EXPECT_GT(steps, 0);
}

TEST(DataParallelClientTest, MemoryOfTheKVCacheIsDivided) {
  VllmConfig config = DataParallelConfig(4);
  config.cache.kv_cache_memory_bytes = 4 * 11 * 1024;
  DataParallelClient client(config, FakeExecutorFactory(WithMemory(1 << 20)));
  // One of the 11 blocks of an engine is the null block.
  EXPECT_EQ(client.ready().num_blocks, 4 * 10);
  EXPECT_EQ(client.ready().max_model_len, 160);
}

TEST(DataParallelClientTest, LongestSequenceIsThatOfTheSmallestEngine) {
  DataParallelClient client(DataParallelConfig(2), FactoryWith(1, WithMemory(6 * 1024)));
  EXPECT_EQ(client.ready().max_model_len, 5 * 16);
}

TEST(DataParallelClientTest, DescriptorIsReadableWhileOutputsArePending) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  EXPECT_FALSE(Readable(client.OutputFd()));
  client.AddRequest(FakeRequest(1, {1, 2}, 1));
  client.AddRequest(FakeRequest(2, {1, 2}, 1));
  std::set<RequestId> ids;
  EngineCoreOutputs outputs;
  while (ids.size() < 2) {
    AwaitReadable(client.OutputFd());
    client.GetOutputs(outputs, 0ms);
    for (size_t i = 0; i < outputs.size(); ++i) ids.insert(outputs[i].request_id);
  }
  EXPECT_FALSE(client.GetOutputs(outputs, 0ms));
  EXPECT_FALSE(Readable(client.OutputFd()));
}

TEST(DataParallelClientTest, InterruptEndsTheNextWait) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  client.Interrupt();
  EXPECT_TRUE(Readable(client.OutputFd()));
  EngineCoreOutputs outputs;
  EXPECT_FALSE(client.GetOutputs(outputs, 1h));
  EXPECT_FALSE(Readable(client.OutputFd()));
}

TEST(DataParallelClientTest, AbortReachesTheEngineOfTheRequest) {
  // Each engine's only request runs until it is aborted.
  DataParallelClient client(DataParallelConfig(2), FactoryWith(0, Endless(1), Endless(2)));
  client.AddRequest(FakeRequest(1, {1}, 100));
  client.AddRequest(FakeRequest(2, {1}, 100));
  EXPECT_GT(client.router().outstanding(0), 0);
  EXPECT_GT(client.router().outstanding(1), 0);
  client.AbortRequests(std::vector<RequestId>{1, 2, 77}, AbortUrgency::kPrompt);
  EXPECT_EQ(client.router().outstanding(0), 0);
  EXPECT_EQ(client.router().outstanding(1), 0);
  // The engines can only run these if the others have ended.
  client.AddRequest(FakeRequest(3, {1}, 3));
  client.AddRequest(FakeRequest(4, {1}, 3));
  const Answers answers = ReadUntil(client, 2);
  EXPECT_TRUE(answers.finished.contains(3) && answers.finished.contains(4));
}

TEST(DataParallelClientTest, RandomAbortsChangeNoOtherTokens) {
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    DataParallelClient client(DataParallelConfig(1 + round % 3), FakeExecutorFactory());
    std::map<RequestId, EngineCoreRequestPtr> kept;
    RequestId next = 1;
    Answers answers;
    EngineCoreOutputs outputs;
    for (int i = 0; i < 100; ++i) {
      const EngineCoreRequestPtr request = MixedRequest(next++);
      client.AddRequest(request);
      kept.emplace(request->request_id, request);
      if (random() % 3 == 0) {
        const RequestId id = 1 + random() % (next - 1);
        const bool finished = answers.finished.contains(id);
        client.AbortRequests(std::array{id}, random() % 2 == 0 ? AbortUrgency::kPrompt : AbortUrgency::kAfterStep);
        if (!finished) kept.erase(id);
      }
      if (client.GetOutputs(outputs, 0ms)) answers.Add(outputs);
    }
    const auto all_finished = [&] {
      return std::all_of(kept.begin(), kept.end(), [&](const auto& k) { return answers.finished.contains(k.first); });
    };
    while (!all_finished()) {
      if (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
    }
    for (const auto& [id, request] : kept) {
      EXPECT_EQ(answers.token_ids.at(id),
                FakeGenerate(*request, *request->sampling_params.max_tokens, FakeConfig().model.vocab_size));
    }
    for (int rank = 0; rank < client.router().num_ranks(); ++rank) EXPECT_EQ(client.router().outstanding(rank), 0);
  }
}

TEST(DataParallelClientTest, DeathOfOneEngineEndsAllOthers) {
  const int64_t threads_before = NumThreads();
  {
    // The requests of the other engine never end.
    DataParallelClient client(DataParallelConfig(2), FactoryWith(1, ThrowingAt(1), Endless(1)));
    client.AddRequest(FakeRequest(1, {1}, 100));
    client.AddRequest(FakeRequest(2, {1}, 100));
    EXPECT_EQ(ReadUntilDead(client), "data-parallel engine 1 of 2: fake failure at step 1");
    EXPECT_TRUE(Readable(client.OutputFd()));
    EXPECT_LE(NumThreadsOnceSettled(threads_before), threads_before);
    EXPECT_THROW(client.AddRequest(FakeRequest(3, {1}, 1)), EngineDeadError);
    EXPECT_THROW(client.GetStats(), EngineDeadError);
    EXPECT_THROW(client.ResetPrefixCache(), EngineDeadError);
    client.AbortRequests(std::vector<RequestId>{1, 2}, AbortUrgency::kPrompt);
  }
  EXPECT_LE(NumThreadsOnceSettled(threads_before), threads_before);
}

TEST(DataParallelClientTest, OutputsFromBeforeTheDeathAreReturnedFirst) {
  DataParallelClient client(DataParallelConfig(2), FactoryWith(1, ThrowingAt(1)));
  client.AddRequest(FakeRequest(1, {1}, 3));
  client.AddRequest(FakeRequest(2, {1}, 3));
  Answers answers;
  EngineCoreOutputs outputs;
  try {
    while (true) {
      if (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
    }
  } catch (const EngineDeadError&) {
  }
  // The engine of request 2 has completed one step.
  EXPECT_EQ(answers.token_ids[2].size(), 1u);
  EXPECT_FALSE(answers.finished.contains(2));
}

TEST(DataParallelClientTest, AddingARequestFindsOutThatItsEngineIsDead) {
  DataParallelClient client(DataParallelConfig(2), FactoryWith(0, ThrowingAt(0)));
  client.AddRequest(FakeRequest(1, {1}, 1));
  std::string cause;
  try {
    for (RequestId id = 2;; ++id) client.AddRequest(FakeRequest(id, {1}, 1));
  } catch (const EngineDeadError& error) {
    cause = error.what();
  }
  EXPECT_EQ(cause, "data-parallel engine 0 of 2: fake failure at step 0");
}

TEST(DataParallelClientTest, LLMEngineEndsEveryRequestWithTheCause) {
  const VllmConfig config = DataParallelConfig(3);
  // The requests of the other engines never end.
  std::latch all_added(1);
  const ExecutorFactory factory = [&all_added](const VllmConfig& engine_config) {
    const int64_t rank = engine_config.parallel.data_parallel_rank;
    FakeModel model = rank == 2 ? ThrowingAt(3) : Endless(static_cast<RequestId>(rank + 1));
    model.on_step = [&all_added](int64_t, const SchedulerOutput&) { all_added.wait(); };
    return LoadedExecutor{std::make_unique<FakeExecutor>(engine_config, model), {}};
  };
  LLMEngine engine(config, nullptr, MakeDataParallelClient(config, factory));
  SamplingParams params;
  params.max_tokens = 200;
  params.ignore_eos = true;
  for (int i = 0; i < 12; ++i) engine.AddRequest(std::to_string(i), std::vector<int32_t>{i + 1, 2, 3}, params);
  all_added.count_down();
  int num_failed = 0;
  try {
    while (engine.HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine.Step(1h)) {
        if (!output.finished) continue;
        EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kError);
        EXPECT_EQ(output.error, "data-parallel engine 2 of 3: fake failure at step 3");
        ++num_failed;
      }
    }
  } catch (const EngineDeadError&) {
  }
  EXPECT_EQ(num_failed, 12);
}

TEST(DataParallelClientTest, FailureAtLoadReachesTheCallerAndLeavesNoThread) {
  const int64_t threads_before = NumThreads();
  for (const int64_t rank : {0, 1, 2}) {
    try {
      DataParallelClient client(DataParallelConfig(3), FactoryWith(rank, ThrowingAtLoad()));
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "fake failure at load");
    }
    EXPECT_LE(NumThreadsOnceSettled(threads_before), threads_before);
  }
}

TEST(DataParallelClientTest, DrainFinishesTheRequestsOfAllEngines) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  for (RequestId id = 1; id <= 20; ++id) client.AddRequest(MixedRequest(id));
  client.Shutdown(ShutdownMode::kDrain);
  EngineCoreOutputs outputs;
  Answers answers;
  while (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
  EXPECT_EQ(answers.finished.size(), 20u);
  EXPECT_THROW(client.AddRequest(FakeRequest(99, {1}, 1)), EngineDeadError);
}

TEST(DataParallelClientTest, ShutdownStopsStepsThatDoNotEnd) {
  DataParallelClient client(DataParallelConfig(2), FactoryWith(0, Endless(1), Endless(2)));
  client.AddRequest(FakeRequest(1, {1}, 100));
  client.AddRequest(FakeRequest(2, {1}, 100));
  client.Shutdown(ShutdownMode::kAbort);
}

TEST(DataParallelClientTest, StatsAreThoseOfAllEngines) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  for (RequestId id = 1; id <= 10; ++id) client.AddRequest(FakeRequest(id, {1, 2, 3}, 5));
  ReadUntil(client, 10);
  EXPECT_EQ(client.GetStats().num_generation_tokens, 50);
  EXPECT_EQ(client.GetStats().num_prompt_tokens, 30);
  EXPECT_TRUE(client.ResetPrefixCache());
}

TEST(DataParallelClientTest, PrefixesAreFoundAgain) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  const std::vector<int32_t> prompt(100, 7);
  for (RequestId id = 1; id <= 10; ++id) {
    client.AddRequest(FakeRequest(id, prompt, 1));
    // This request has no prefix, and would go to the other engine next time if the router did not know the prefix.
    client.AddRequest(FakeRequest(100 + id, {1}, 1));
    ReadUntil(client, 2);
  }
  EXPECT_EQ(client.GetStats().prefix_cache.hits, 9 * 96);
}

std::shared_ptr<const EngineSnapshot> Snapshot(EngineMonitor& monitor) {
  monitor.RequestSnapshot();
  AwaitReadable(monitor.SnapshotFd());
  return monitor.Latest();
}

TEST(DataParallelMonitorTest, SnapshotShowsTheRequestsOfAllEngines) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  EXPECT_EQ(client.monitor()->Latest(), nullptr);
  client.monitor()->SetAdmissionPaused(true);
  for (RequestId id = 1; id <= 6; ++id) client.AddRequest(FakeRequest(id, {1, 2, 3}, 5));
  const auto snapshot = Snapshot(*client.monitor());
  ASSERT_NE(snapshot, nullptr);
  EXPECT_EQ(client.monitor()->Latest(), snapshot);
  EXPECT_TRUE(snapshot->scheduler.admission_paused);
  EXPECT_EQ(snapshot->num_kv_blocks, client.ready().num_blocks);
  std::set<RequestId> ids;
  for (const RequestSnapshot& request : snapshot->requests) ids.insert(request.request_id);
  EXPECT_EQ(ids, (std::set<RequestId>{1, 2, 3, 4, 5, 6}));
  client.monitor()->AbortRequest(4);
  EXPECT_EQ(ReadUntil(client, 1).finished, (std::map<RequestId, FinishReason>{{4, FinishReason::kAbort}}));
  client.monitor()->SetAdmissionPaused(false);
  EXPECT_EQ(ReadUntil(client, 5).finished.size(), 5u);
  EXPECT_EQ(client.router().outstanding(0) + client.router().outstanding(1), 0);
}

TEST(DataParallelMonitorTest, ManyThreadsMayUseTheMonitor) {
  DataParallelClient client(DataParallelConfig(3), FakeExecutorFactory());
  std::atomic<bool> stop = false;
  std::latch all_run(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (bool first = true; !stop; first = false) {
        client.monitor()->RequestSnapshot();
        client.monitor()->Latest();
        if (i == 0) client.monitor()->SetAdmissionPaused(true);
        if (i == 1) client.monitor()->SetAdmissionPaused(false);
        if (i == 2) client.monitor()->AbortRequest(1'000'000);
        if (first) all_run.count_down();
      }
    });
  }
  all_run.wait();
  for (RequestId id = 1; id <= 60; ++id) client.AddRequest(MixedRequest(id));
  EngineCoreOutputs outputs;
  size_t num_outputs = 0;
  while (num_outputs == 0) {
    client.GetOutputs(outputs, 1h);
    num_outputs += outputs.size();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  client.monitor()->SetAdmissionPaused(false);
  client.Shutdown(ShutdownMode::kDrain);
}

TEST(DataParallelClientTest, AllSequencesOfABeamSearchAreReturned) {
  DataParallelClient client(DataParallelConfig(2), FakeExecutorFactory());
  SamplingParams params;
  params.use_beam_search = true;
  params.beam_width = 3;
  params.temperature = 0.0;
  params.logprobs = 6;
  params.ignore_eos = true;
  for (RequestId id = 1; id <= 28; id += 3)
    client.AddRequest(FakeRequest(id, {1, 2, static_cast<int32_t>(id)}, 8, params));
  const Answers answers = ReadUntil(client, 30);
  for (RequestId id = 1; id <= 30; ++id) EXPECT_EQ(answers.token_ids.at(id).size(), 8u);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(client.router().outstanding(rank), 0);
}

}  // namespace
}  // namespace vllm
