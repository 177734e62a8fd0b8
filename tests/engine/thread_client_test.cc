#include "engine/core/thread_client.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <latch>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "engine/config/errors.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/thread_count.h"
#include "tests/support/thread_state.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;
using testing_support::NumContextSwitches;
using testing_support::NumThreads;
using testing_support::NumThreadsOnceSettled;
using testing_support::ThreadIds;
using testing_support::ThreadSleeps;
using testing_support::WaitUntilThreadsSleep;

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

// Reads outputs until the engine is dead, then returns the cause.
std::string ReadUntilDead(EngineCoreClient& client) {
  EngineCoreOutputs outputs;
  try {
    while (true) client.GetOutputs(outputs, 1h);
  } catch (const EngineDeadError& error) {
    return error.what();
  }
}

// Waits until the engine is dead, without reading an output.
void WaitUntilDead(EngineCoreClient& client) {
  try {
    while (true) client.GetStats();
  } catch (const EngineDeadError&) {
  }
}

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(ThreadClientTest, IsReadyOnceConstructed) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  EXPECT_EQ(client.ready().num_blocks, 128);
  EXPECT_EQ(client.ready().max_model_len, 256);
  EXPECT_GE(client.ready().load_time, Seconds(0));
}

TEST(ThreadClientTest, AnswersEveryRequest) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  std::map<RequestId, EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 50; ++id) {
    requests[id] = FakeRequest(id, {static_cast<int32_t>(id), 2, 3}, 20);
    client.AddRequest(requests[id]);
  }
  const Answers answers = ReadUntil(client, 50);
  for (const auto& [id, request] : requests) EXPECT_EQ(answers.token_ids.at(id), FakeGenerate(*request, 20, 259));
}

TEST(ThreadClientTest, LoadFailureKeepsItsTypeAndLeavesNoThread) {
  const int64_t before = NumThreads();
  const auto failing = [](const VllmConfig&) -> LoadedExecutor { throw ModelError("no such tensor"); };
  EXPECT_THROW(ThreadClient(FakeConfig(), failing), ModelError);
  FakeModel model;
  model.memory_bytes = 10;
  EXPECT_THROW(ThreadClient(FakeConfig(), FakeExecutorFactory(model)), ResourceError);
  EXPECT_LE(NumThreadsOnceSettled(before), before);
}

TEST(ThreadClientTest, ExceptionNotDerivedFromStdExceptionIsReported) {
  FakeModel model;
  model.on_step = [](int64_t, const SchedulerOutput&) { throw 42; };
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 5));
  EXPECT_EQ(ReadUntilDead(client), "unknown exception in the engine");
}

TEST(ThreadClientTest, DeadEngineKeepsReportingTheFirstCause) {
  FakeModel model;
  model.throw_at_step = 3;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 50));
  EXPECT_EQ(ReadUntilDead(client), "fake failure at step 3");
  EXPECT_EQ(ReadUntilDead(client), "fake failure at step 3");
  EXPECT_TRUE(Readable(client.OutputFd()));
  try {
    client.AddRequest(FakeRequest(2, {1}, 5));
    FAIL();
  } catch (const EngineDeadError& error) {
    EXPECT_STREQ(error.what(), "fake failure at step 3");
  }
  EXPECT_THROW(client.GetStats(), EngineDeadError);
  EXPECT_THROW(client.ResetPrefixCache(), EngineDeadError);
  const std::vector<RequestId> ids = {1};
  client.AbortRequests(ids, AbortUrgency::kPrompt);
  client.Shutdown(ShutdownMode::kDrain);
}

TEST(ThreadClientTest, OutputsBeforeAFailureAreReturnedFirst) {
  FakeModel model;
  model.throw_at_step = 4;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 2));
  client.AddRequest(FakeRequest(2, {1}, 50));
  WaitUntilDead(client);
  EngineCoreOutputs outputs;
  ASSERT_TRUE(client.GetOutputs(outputs, 0ms));
  Answers answers;
  answers.Add(outputs);
  EXPECT_EQ(answers.finished.count(1), 1u);
  EXPECT_EQ(ReadUntilDead(client), "fake failure at step 4");
}

// The engine fails at load, in the profiling run, at cache allocation or at one of the first 20 steps.
TEST(ThreadClientTest, EveryFailureIsReportedWithItsCauseAndLeavesNoThread) {
  const int64_t before = NumThreads();
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    FakeModel model;
    const auto failure = random() % 6;
    model.throw_at_load = failure == 0;
    model.throw_at_profile = failure == 1;
    model.throw_at_cache = failure == 2;
    model.throw_at_step = failure >= 3 ? static_cast<int64_t>(random() % 20) : -1;
    std::string cause;
    try {
      ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
      for (RequestId id = 1; id <= 5; ++id) client.AddRequest(FakeRequest(id, {1, 2, 3}, 60));
      cause = ReadUntilDead(client);
    } catch (const std::runtime_error& error) {
      cause = error.what();
    }
    ASSERT_EQ(cause.rfind("fake failure at ", 0), 0u) << cause;
  }
  EXPECT_LE(NumThreadsOnceSettled(before), before);
}

// Adds many more requests than the input queue can hold, on its own thread.
class Adder {
 public:
  static constexpr size_t kCount = 8 * ThreadClient::kInputQueueCapacity;

  explicit Adder(ThreadClient& client) {
    const std::set<pid_t> before = ThreadIds();
    thread_ = std::thread([this, &client] { Run(client); });
    running_.wait();
    for (const pid_t id : ThreadIds()) {
      if (!before.contains(id)) id_ = id;
    }
    go_.count_down();
  }
  ~Adder() { Join(); }

  // Returns once the thread waits for space in the queue, has added all requests, or has found the engine dead.
  void WaitUntilBlocked() const {
    while (!finished_ && !(num_added_ >= ThreadClient::kInputQueueCapacity && ThreadSleeps(id_))) {
      std::this_thread::yield();
    }
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  size_t num_added() const { return num_added_; }
  const std::string& cause_of_death() const { return cause_of_death_; }

 private:
  void Run(ThreadClient& client) {
    running_.count_down();
    go_.wait();
    try {
      for (RequestId id = 1; id <= kCount; ++id) {
        client.AddRequest(FakeRequest(id, {1}, 1));
        ++num_added_;
      }
    } catch (const EngineDeadError& error) {
      cause_of_death_ = error.what();
    }
    finished_ = true;
  }

  std::latch running_{1};
  std::latch go_{1};
  std::atomic<size_t> num_added_{0};
  std::atomic<bool> finished_{false};
  std::string cause_of_death_;
  pid_t id_ = -1;
  std::thread thread_;
};

TEST(ThreadClientTest, AddRequestWaitsWhileTheQueueIsFullAndNoRequestIsLost) {
  const auto gate = std::make_shared<std::latch>(1);
  FakeModel model;
  model.on_step = [gate](int64_t, const SchedulerOutput&) { gate->wait(); };
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  Adder adder(client);
  adder.WaitUntilBlocked();
  // Before its first step, the engine took at most one full queue of requests. Then the queue filled again.
  EXPECT_LE(adder.num_added(), 2 * ThreadClient::kInputQueueCapacity);
  gate->count_down();
  ReadUntil(client, Adder::kCount);
}

TEST(ThreadClientTest, BlockedAddWakesWhenTheEngineDies) {
  const auto gate = std::make_shared<std::latch>(1);
  FakeModel model;
  model.on_step = [gate](int64_t, const SchedulerOutput&) {
    gate->wait();
    throw std::runtime_error("late failure");
  };
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  Adder adder(client);
  adder.WaitUntilBlocked();
  gate->count_down();
  adder.Join();
  EXPECT_EQ(adder.cause_of_death(), "late failure");
}

TEST(ThreadClientTest, SlowReaderGetsOneMergedOutputPerRequest) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  const auto request = FakeRequest(1, {1}, 100);
  client.AddRequest(request);
  client.AddRequest(FakeRequest(2, {2}, 100));
  const auto busy = [](const SchedulerStats& stats) { return stats.num_running_reqs + stats.num_waiting_reqs > 0; };
  while (busy(client.GetStats())) {
  }
  EngineCoreOutputs outputs;
  ASSERT_TRUE(client.GetOutputs(outputs, 0ms));
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].new_token_ids, FakeGenerate(*request, 100, 259));
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_FALSE(client.GetOutputs(outputs, 0ms));
}

TEST(ThreadClientTest, DescriptorIsReadableWhileOutputsArePending) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  EXPECT_FALSE(Readable(client.OutputFd()));
  client.AddRequest(FakeRequest(1, {1}, 1));
  pollfd entry{client.OutputFd(), POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, 5000), 1);
  EngineCoreOutputs outputs;
  EXPECT_TRUE(client.GetOutputs(outputs, 0ms));
  EXPECT_FALSE(Readable(client.OutputFd()));
}

TEST(ThreadClientTest, InterruptEndsOneWait) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  EngineCoreOutputs outputs;
  client.Interrupt();
  EXPECT_TRUE(Readable(client.OutputFd()));
  EXPECT_FALSE(client.GetOutputs(outputs, 1h));
  EXPECT_FALSE(Readable(client.OutputFd()));
}

TEST(ThreadClientTest, UtilityCallsReturnTheirResult) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.AddRequest(FakeRequest(1, std::vector<int32_t>(40, 1), 1));
  ReadUntil(client, 1);
  EXPECT_EQ(client.GetStats().prefix_cache.requests, 1);
  EXPECT_TRUE(client.ResetPrefixCache());
}

TEST(ThreadClientTest, AbortStopsARequestWithinOneStep) {
  // The engine waits in its fourth step until the abort is queued.
  const auto gate = std::make_shared<std::latch>(1);
  FakeModel model;
  model.on_step = [gate](int64_t step, const SchedulerOutput& output) {
    if (step == 3) gate->wait();
    // A step without tokens tells the ranks that the request has finished.
    if (step > 3) {
      EXPECT_EQ(output.total_num_scheduled_tokens, 0);
    }
  };
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 200));
  EngineCoreOutputs outputs;
  ASSERT_TRUE(client.GetOutputs(outputs, 1h));
  const std::vector<RequestId> ids = {1};
  client.AbortRequests(ids, AbortUrgency::kPrompt);
  gate->count_down();
  EXPECT_EQ(client.GetStats().num_running_reqs, 0);  // this call is queued after the abort
  EXPECT_EQ(client.GetStats().num_waiting_reqs, 0);
}

TEST(ThreadClientTest, DrainingFinishesRequestsAndKeepsTheirOutputs) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  for (RequestId id = 1; id <= 20; ++id) client.AddRequest(FakeRequest(id, {1, 2}, 30));
  client.Shutdown(ShutdownMode::kDrain);
  client.Shutdown(ShutdownMode::kAbort);
  Answers answers;
  EngineCoreOutputs outputs;
  while (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
  EXPECT_EQ(answers.finished.size(), 20u);
  EXPECT_THROW(client.AddRequest(FakeRequest(21, {1}, 1)), EngineDeadError);
}

TEST(ThreadClientTest, ShutdownByDestructorDoesNotWaitForRequests) {
  // If the engine reaches its sixth step, it waits there until this thread sleeps in the client's destructor.
  const pid_t this_thread = gettid();
  const auto destroying = std::make_shared<std::latch>(1);
  const auto num_tokens = std::make_shared<std::atomic<int64_t>>(0);
  FakeModel model;
  model.on_step = [=](int64_t step, const SchedulerOutput& output) {
    *num_tokens += output.total_num_scheduled_tokens;
    if (step != 5) return;
    destroying->wait();
    WaitUntilThreadsSleep({this_thread});
  };
  const int64_t before = NumThreads();
  {
    ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
    client.AddRequest(FakeRequest(1, {1}, 200));
    EngineCoreOutputs outputs;
    client.GetOutputs(outputs, 1h);
    destroying->count_down();
  }
  EXPECT_LE(*num_tokens, 6);
  EXPECT_LE(NumThreadsOnceSettled(before), before);
}

TEST(ThreadClientTest, IdleEngineSleeps) {
  const std::set<pid_t> before = ThreadIds();
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.AddRequest(FakeRequest(1, {1}, 5));
  ReadUntil(client, 1);
  std::set<pid_t> engine = ThreadIds();
  for (const pid_t id : before) engine.erase(id);
  ASSERT_FALSE(engine.empty());
  client.GetStats();  // when this returns, the engine has finished with the request
  WaitUntilThreadsSleep(engine);
  // A polling loop would change the number of switches again and again, even if it sleeps between two polls.
  const auto stays_asleep = [](pid_t id) {
    const int64_t num_switches = NumContextSwitches(id);
    for (int i = 0; i < 2000; ++i) {
      if (NumContextSwitches(id) != num_switches) return false;
    }
    return ThreadSleeps(id);
  };
  for (const pid_t id : engine) {
    // The thread may have been seen asleep while it waited for a mutex.
    EXPECT_TRUE(stays_asleep(id) || stays_asleep(id) || stays_asleep(id)) << id;
  }
}

TEST(ThreadClientTest, ManyAbortsDoNotAffectOtherRequests) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr RequestId kCount = 1500;
#else
  constexpr RequestId kCount = 10000;
#endif
  VllmConfig config = FakeConfig();
  config.cache.num_blocks_override = 40;
  ThreadClient client(config, FakeExecutorFactory());
  std::mt19937 random(5);
  std::map<RequestId, EngineCoreRequestPtr> kept;
  Answers answers;
  EngineCoreOutputs outputs;
  for (RequestId id = 1; id <= kCount; ++id) {
    std::vector<int32_t> prompt(1 + random() % 40, static_cast<int32_t>(random() % 3));
    const auto request = FakeRequest(id, prompt, 1 + static_cast<int64_t>(random() % 8));
    client.AddRequest(request);
    if (random() % 4 == 0) kept[id] = request;
    if (id > 8 && random() % 2 == 0) {
      std::vector<RequestId> ids;
      for (RequestId other = id - 8; other <= id; ++other) {
        if (!kept.contains(other)) ids.push_back(other);
      }
      client.AbortRequests(ids, AbortUrgency::kPrompt);
    }
    if (random() % 16 == 0 && client.GetOutputs(outputs, 0ms)) answers.Add(outputs);
  }
  const auto done = [&] {
    return std::all_of(kept.begin(), kept.end(), [&](const auto& k) { return answers.finished.contains(k.first); });
  };
  while (!done()) {
    if (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
  }
  for (const auto& [id, request] : kept) {
    ASSERT_EQ(answers.token_ids[id], FakeGenerate(*request, *request->sampling_params.max_tokens, 259));
  }
  client.Shutdown(ShutdownMode::kDrain);
}

// In the tests below, each step that schedules the endless request, except the engine's first step, runs until it is
// cancelled. If nothing cancels it, the test hangs.

TEST(ThreadClientTest, AbortOfTheOnlyRequestEndsItsStep) {
  FakeModel model;
  model.endless_request = 1;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1, 2, 3}, 20));
  EngineCoreOutputs outputs;
  while (!client.GetOutputs(outputs, 100ms)) {
  }
  const RequestId id = 1;
  client.AbortRequests(std::span(&id, 1), AbortUrgency::kPrompt);
  const EngineCoreRequestPtr next = FakeRequest(2, {1, 2, 3}, 20);
  client.AddRequest(next);
  const Answers answers = ReadUntil(client, 1);
  EXPECT_EQ(answers.token_ids.at(2), FakeGenerate(*next, 20, 259));
}

TEST(ThreadClientTest, ShutdownEndsTheStep) {
  FakeModel model;
  model.endless_request = 1;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1, 2, 3}, 20));
  EngineCoreOutputs outputs;
  while (!client.GetOutputs(outputs, 100ms)) {
  }
  client.Shutdown(ShutdownMode::kAbort);
  EXPECT_FALSE(client.GetOutputs(outputs, 0ms));
}

TEST(ThreadClientTest, AbortOfOneRequestEndsALongStepAndTheOthersContinue) {
  std::vector<EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 3; ++id) requests.push_back(FakeRequest(id, std::vector<int32_t>(20, 7), 20));
  FakeModel model;
  model.endless_request = 2;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  for (const EngineCoreRequestPtr& request : requests) client.AddRequest(request);
  EngineCoreOutputs outputs;
  while (!client.GetOutputs(outputs, 100ms)) {
  }
  Answers answers;
  answers.Add(outputs);
  const RequestId id = 2;
  client.AbortRequests(std::span(&id, 1), AbortUrgency::kPrompt);
  while (answers.finished.size() < 2) {
    if (client.GetOutputs(outputs, 100ms)) answers.Add(outputs);
  }
  EXPECT_EQ(answers.token_ids.at(1), FakeGenerate(*requests[0], 20, 259));
  EXPECT_EQ(answers.token_ids.at(3), FakeGenerate(*requests[2], 20, 259));
  EXPECT_FALSE(answers.finished.contains(2));
}

}  // namespace
}  // namespace vllm
