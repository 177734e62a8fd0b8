#include "engine/core/inproc_client.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/engine/fake_executor.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;

TEST(InprocClientTest, EachCallRunsOneStep) {
  InprocClient client(FakeConfig(), FakeExecutorFactory());
  const auto request = FakeRequest(1, {1, 2}, 3);
  client.AddRequest(request);
  std::vector<int32_t> ids;
  EngineCoreOutputs outputs;
  while (client.GetOutputs(outputs, 0ms)) {
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(outputs[0].new_token_ids.size(), 1u);
    ids.push_back(outputs[0].new_token_ids[0]);
  }
  EXPECT_EQ(ids, FakeGenerate(*request, 3, 259));
  EXPECT_FALSE(client.engine_core()->HasRequests());
}

TEST(InprocClientTest, HasNoOutputDescriptor) {
  InprocClient client(FakeConfig(), FakeExecutorFactory());
  EXPECT_EQ(client.OutputFd(), -1);
}

TEST(InprocClientTest, FailedStepKillsTheEngineAndItsCauseIsReported) {
  FakeModel model;
  model.throw_at_step = 0;
  InprocClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 3));
  EngineCoreOutputs outputs;
  for (int i = 0; i < 2; ++i) {
    try {
      client.GetOutputs(outputs, 0ms);
      FAIL();
    } catch (const EngineDeadError& error) {
      EXPECT_STREQ(error.what(), "fake failure at step 0");
    }
  }
  EXPECT_THROW(client.AddRequest(FakeRequest(2, {1}, 3)), EngineDeadError);
  EXPECT_THROW(client.GetStats(), EngineDeadError);
  client.Shutdown(ShutdownMode::kDrain);
}

TEST(InprocClientTest, DrainingKeepsOutputsForTheReader) {
  InprocClient client(FakeConfig(), FakeExecutorFactory());
  const auto request = FakeRequest(1, {1}, 30);
  client.AddRequest(request);
  client.Shutdown(ShutdownMode::kDrain);
  EngineCoreOutputs outputs;
  ASSERT_TRUE(client.GetOutputs(outputs, 0ms));
  EXPECT_EQ(outputs[0].new_token_ids, FakeGenerate(*request, 30, 259));
  EXPECT_FALSE(client.GetOutputs(outputs, 0ms));
  EXPECT_THROW(client.AddRequest(FakeRequest(2, {1}, 3)), EngineDeadError);
}

TEST(InprocClientTest, FailureWhileDrainingIsReportedAfterTheOutputs) {
  FakeModel model;
  model.throw_at_step = 5;
  InprocClient client(FakeConfig(), FakeExecutorFactory(model));
  client.AddRequest(FakeRequest(1, {1}, 30));
  client.Shutdown(ShutdownMode::kDrain);
  EngineCoreOutputs outputs;
  ASSERT_TRUE(client.GetOutputs(outputs, 0ms));
  EXPECT_EQ(outputs[0].new_token_ids.size(), 5u);
  EXPECT_THROW(client.GetOutputs(outputs, 0ms), EngineDeadError);
}

}  // namespace
}  // namespace vllm
