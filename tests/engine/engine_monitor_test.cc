// Tests that other threads can watch and steer an engine that runs on its own thread.
#include "engine/core/engine_monitor.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <latch>
#include <map>
#include <thread>

#include "engine/core/thread_client.h"
#include "tests/engine/fake_executor.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;

// Waits for the snapshot that was requested last.
void AwaitSnapshot(EngineMonitor& monitor) {
  pollfd fd = {monitor.SnapshotFd(), POLLIN, 0};
  while (poll(&fd, 1, -1) != 1) {
  }
}

std::shared_ptr<const EngineSnapshot> Snapshot(EngineMonitor& monitor) {
  monitor.RequestSnapshot();
  AwaitSnapshot(monitor);
  return monitor.Latest();
}

// Reads outputs until `num_finished` requests have finished.
std::map<RequestId, FinishReason> ReadUntil(EngineCoreClient& client, size_t num_finished,
                                            std::map<RequestId, std::vector<int32_t>>* token_ids = nullptr) {
  std::map<RequestId, FinishReason> finished;
  EngineCoreOutputs outputs;
  while (finished.size() < num_finished) {
    if (!client.GetOutputs(outputs, 1h)) continue;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (token_ids != nullptr) {
        auto& ids = (*token_ids)[outputs[i].request_id];
        ids.insert(ids.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
      }
      if (outputs[i].finish_reason != FinishReason::kNone) finished[outputs[i].request_id] = outputs[i].finish_reason;
    }
  }
  return finished;
}

TEST(EngineMonitorTest, IdleEngineMakesASnapshot) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  EXPECT_EQ(client.monitor()->Latest(), nullptr);
  const auto snapshot = Snapshot(*client.monitor());
  ASSERT_NE(snapshot, nullptr);
  EXPECT_TRUE(snapshot->requests.empty());
  EXPECT_EQ(snapshot->num_kv_blocks, 128);
  EXPECT_EQ(snapshot->kv_blocks, std::vector<uint16_t>(128, EngineSnapshot::kFree));
  EXPECT_EQ(snapshot->max_num_batched_tokens, 64);
  EXPECT_EQ(snapshot->num_executed_steps, 0);
}

TEST(EngineMonitorTest, SnapshotsOfARunningEngineShowItsRequest) {
  // The fourth step waits until the snapshot has been requested.
  std::latch requested(1);
  FakeModel model;
  model.on_step = [&requested](int64_t step, const SchedulerOutput&) {
    if (step == 3) requested.wait();
  };
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(7, {1, 2, 3}, 200));
  EngineCoreOutputs outputs;
  while (!client.GetOutputs(outputs, 1h)) {
  }
  client.monitor()->RequestSnapshot();
  requested.count_down();
  AwaitSnapshot(*client.monitor());
  const auto snapshot = client.monitor()->Latest();
  ASSERT_EQ(snapshot->requests.size(), 1u);
  EXPECT_EQ(snapshot->requests[0].request_id, 7u);
  EXPECT_GT(snapshot->requests[0].num_output_tokens, 0);
  EXPECT_EQ(snapshot->requests[0].num_prompt_tokens, 3);
  EXPECT_EQ(snapshot->requests[0].last_prompt_token_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_GT(snapshot->num_executed_steps, 0);
  EXPECT_EQ(ReadUntil(client, 1).at(7), FinishReason::kLength);
}

TEST(EngineMonitorTest, PausedRequestsWaitAndThenGetTheSameTokens) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.monitor()->SetAdmissionPaused(true);
  std::map<RequestId, EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 20; ++id) {
    requests[id] = FakeRequest(id, {static_cast<int32_t>(id), 2, 3}, 20);
    client.AddRequest(requests[id]);
  }
  const auto paused = Snapshot(*client.monitor());
  EXPECT_TRUE(paused->scheduler.admission_paused);
  EXPECT_EQ(paused->scheduler.num_waiting_reqs, 20);
  EXPECT_EQ(paused->scheduler.num_running_reqs, 0);
  client.monitor()->SetAdmissionPaused(false);
  std::map<RequestId, std::vector<int32_t>> token_ids;
  ReadUntil(client, 20, &token_ids);
  for (const auto& [id, request] : requests) EXPECT_EQ(token_ids.at(id), FakeGenerate(*request, 20, 259));
}

TEST(EngineMonitorTest, FrontEndSeesThatAdmissionIsPaused) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.monitor()->SetAdmissionPaused(true);
  Snapshot(*client.monitor());
  EngineCoreOutputs outputs;
  client.GetOutputs(outputs, 0ms);
  EXPECT_TRUE(outputs.stats.admission_paused);
}

TEST(EngineMonitorTest, AbortEndsARequestInAStepThatDoesNotEnd) {
  FakeModel model;
  model.endless_request = 1;
  ThreadClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1, 2, 3}, 200));
  client.monitor()->AbortRequest(99);
  client.monitor()->AbortRequest(1);
  EXPECT_EQ(ReadUntil(client, 1).at(1), FinishReason::kAbort);
}

TEST(EngineMonitorTest, AbortWhilePausedReachesTheFrontEnd) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.monitor()->SetAdmissionPaused(true);
  client.AddRequest(FakeRequest(1, {1, 2, 3}, 20));
  client.monitor()->AbortRequest(1);
  EXPECT_EQ(ReadUntil(client, 1).at(1), FinishReason::kAbort);
}

TEST(EngineMonitorTest, DrainingEndsThePause) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  client.monitor()->SetAdmissionPaused(true);
  client.AddRequest(FakeRequest(1, {1, 2, 3}, 20));
  client.Shutdown(ShutdownMode::kDrain);
  EXPECT_EQ(ReadUntil(client, 1).at(1), FinishReason::kLength);
}

TEST(EngineMonitorTest, ManyThreadsMayUseTheMonitor) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  std::map<RequestId, EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 40; ++id) {
    requests[id] = FakeRequest(id, {static_cast<int32_t>(id), 2, 3}, 50);
    client.AddRequest(requests[id]);
  }
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&client, &ends, i] {
      while (!ends) {
        client.monitor()->RequestSnapshot();
        client.monitor()->Latest();
        if (i == 0) client.monitor()->SetAdmissionPaused(true);
        if (i == 1) client.monitor()->SetAdmissionPaused(false);
      }
    });
  }
  std::map<RequestId, std::vector<int32_t>> token_ids;
  ReadUntil(client, 40, &token_ids);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& [id, request] : requests) EXPECT_EQ(token_ids.at(id), FakeGenerate(*request, 50, 259));
}

}  // namespace
}  // namespace vllm
