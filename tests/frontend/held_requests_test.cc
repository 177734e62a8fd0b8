// Tests requests whose grammars are compiled while other requests run.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <thread>

#include "engine/config/errors.h"
#include "engine/core/engine_monitor.h"
#include "engine/data_parallel/data_parallel_client.h"
#include "engine/frontend/llm_engine.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeModel;

constexpr char kSlow[] = R"({"type":"boolean"})";

// A client whose Interrupt, called by the thread that compiles grammars, returns only after Release. So this thread
// compiles one grammar, and the next ones wait.
class BlockingClient final : public EngineCoreClient {
 public:
  explicit BlockingClient(std::unique_ptr<EngineCoreClient> client) : client_(std::move(client)) {}

  void Release() {
    if (!std::exchange(was_released_, true)) release_.set_value();
  }
  // Waits until the compiler's thread is blocked.
  void WaitForInterrupt() { interrupted_.get_future().wait(); }

  const EngineCoreReadyInfo& ready() const override { return client_->ready(); }
  void AddRequest(EngineCoreRequestPtr request) override { client_->AddRequest(std::move(request)); }
  void AbortRequests(std::span<const RequestId> ids, AbortUrgency urgency) override {
    client_->AbortRequests(ids, urgency);
  }
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override {
    return client_->GetOutputs(outputs, timeout);
  }
  void Interrupt() override {
    client_->Interrupt();
    if (std::this_thread::get_id() == owner_ || std::exchange(has_blocked_, true)) return;
    interrupted_.set_value();
    is_released_.wait();
  }
  int OutputFd() const override { return client_->OutputFd(); }
  bool ResetPrefixCache() override { return client_->ResetPrefixCache(); }
  SchedulerStats GetStats() override { return client_->GetStats(); }
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override {
    client_->AddLoRA(slot, adapter);
  }
  void Shutdown(ShutdownMode mode) override { client_->Shutdown(mode); }
  EngineMonitor* monitor() override { return client_->monitor(); }

 private:
  std::unique_ptr<EngineCoreClient> client_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::promise<void> release_, interrupted_;
  std::shared_future<void> is_released_ = release_.get_future().share();
  bool was_released_ = false;
  bool has_blocked_ = false;  // the compiler's thread only
};

enum class ClientKind { kInproc, kThread, kDataParallel };

class HeldRequestsTest : public ::testing::TestWithParam<ClientKind> {
 protected:
  HeldRequestsTest() {
    config_.model.eos_token_ids = {testing::kEos};
    if (GetParam() == ClientKind::kDataParallel) config_.parallel.data_parallel_size = 2;
  }
  // The engine waits for the compiler's thread.
  ~HeldRequestsTest() override { client_->Release(); }

  // Makes an engine whose compiler is busy until Release.
  void MakeBusy(const FakeModel& model = {}) {
    Make(model);
    AddConstrained("first", R"({"const":1})");
    client_->WaitForInterrupt();
    RunAll();
  }
  void Make(const FakeModel& model = {}) {
    const auto make = [&] {
      const ExecutorFactory factory = FakeExecutorFactory(model);
      if (GetParam() == ClientKind::kInproc) return MakeInprocClient(config_, factory);
      return GetParam() == ClientKind::kThread ? MakeThreadClient(config_, factory)
                                               : MakeDataParallelClient(config_, factory);
    };
    auto client = std::make_unique<BlockingClient>(make());
    client_ = client.get();
    engine_ = std::make_unique<LLMEngine>(config_, testing::MakeByteTokenizer(), std::move(client));
  }
  static SamplingParams Params(const std::string& schema, int64_t n = 1) {
    SamplingParams params;
    params.max_tokens = 5;
    params.n = n;
    params.output_kind = RequestOutputKind::kFinalOnly;
    if (!schema.empty()) params.structured_outputs = StructuredOutputsParams{schema};
    return params;
  }
  void AddConstrained(const std::string& id, const std::string& schema, int64_t n = 1) {
    engine_->AddRequest(id, TextPrompt{"prompt"}, Params(schema, n));
  }
  std::vector<RequestOutput> Step() { return engine_->Step(10ms); }
  // Steps until `num_left` requests are unfinished, and returns the final outputs.
  std::map<std::string, RequestOutput> RunAll(int64_t num_left = 0) {
    std::map<std::string, RequestOutput> outputs;
    while (engine_->NumUnfinishedRequests() > num_left) {
      for (const RequestOutput& output : engine_->Step()) {
        if (output.finished) outputs[output.request_id] = output;
      }
    }
    return outputs;
  }

  VllmConfig config_ = FakeConfig();
  BlockingClient* client_ = nullptr;
  std::unique_ptr<LLMEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Clients, HeldRequestsTest,
                         ::testing::Values(ClientKind::kInproc, ClientKind::kThread, ClientKind::kDataParallel),
                         [](const auto& p) {
                           if (p.param == ClientKind::kInproc) return "Inproc";
                           return p.param == ClientKind::kThread ? "Thread" : "DataParallel";
                         });

TEST_P(HeldRequestsTest, ASlowGrammarDelaysNoOtherRequest) {
  MakeBusy();
  AddConstrained("slow", kSlow);
  AddConstrained("known", R"({"const":1})");
  AddConstrained("free", "");
  EXPECT_EQ(engine_->NumUnfinishedRequests(), 3);
  const auto others = RunAll(1);
  EXPECT_EQ(others.size(), 2u);
  EXPECT_EQ(others.at("known").outputs[0].token_ids.size(), 5u);
  EXPECT_EQ(others.at("free").outputs[0].token_ids.size(), 5u);
  EXPECT_TRUE(Step().empty());
  client_->Release();
  EXPECT_EQ(RunAll().at("slow").outputs[0].token_ids.size(), 5u);
}

// The output of the model is a function of the prompt and the seed.
TEST_P(HeldRequestsTest, WaitingChangesNoToken) {
  Make();
  client_->Release();
  AddConstrained("slow", kSlow);
  const std::vector<int32_t> expected = RunAll().at("slow").outputs[0].token_ids;
  MakeBusy();
  AddConstrained("slow", kSlow);
  AddConstrained("free", "");
  RunAll(1);
  client_->Release();
  EXPECT_EQ(RunAll().at("slow").outputs[0].token_ids, expected);
}

TEST_P(HeldRequestsTest, AllSequencesOfARequestWaitForOneGrammar) {
  MakeBusy();
  AddConstrained("slow", kSlow, 3);
  EXPECT_TRUE(Step().empty());
  client_->Release();
  const RequestOutput output = RunAll().at("slow");
  ASSERT_EQ(output.outputs.size(), 3u);
  for (const CompletionOutput& completion : output.outputs) {
    EXPECT_EQ(completion.token_ids.size(), 5u);
    EXPECT_EQ(completion.valid, false);  // the fake model does not obey
  }
}

TEST_P(HeldRequestsTest, HeldSequencesCountAsWaiting) {
  MakeBusy();
  AddConstrained("slow", kSlow, 3);
  AddConstrained("other", kSlow);
  Step();
  EXPECT_EQ(engine_->stats().num_waiting_reqs, 4);
  const EngineMonitor* monitor = engine_->client().monitor();
  EXPECT_EQ(monitor == nullptr ? 4 : monitor->num_held_reqs(), 4);
  engine_->AbortRequest("other");
  Step();
  EXPECT_EQ(engine_->stats().num_waiting_reqs, 3);
  client_->Release();
  RunAll();
  EXPECT_EQ(engine_->stats().num_waiting_reqs, 0);
  EXPECT_EQ(monitor == nullptr ? 0 : monitor->num_held_reqs(), 0);
}

TEST_P(HeldRequestsTest, ARejectedGrammarEndsOnlyItsRequest) {
  MakeBusy();
  const int64_t num_prompt_tokens = engine_->metrics().num_prompt_tokens;
  AddConstrained("bad", R"({"format":"idn-email"})", 2);
  AddConstrained("good", kSlow);
  client_->Release();
  const auto outputs = RunAll();
  const RequestOutput& bad = outputs.at("bad");
  EXPECT_TRUE(bad.rejected);
  EXPECT_EQ(bad.error, "JSON schema: #/format: not supported (idn-email)");
  ASSERT_EQ(bad.outputs.size(), 2u);
  EXPECT_EQ(bad.outputs[1].finish_reason, FinishReason::kError);
  EXPECT_FALSE(outputs.at("good").rejected);
  EXPECT_EQ(outputs.at("good").error, "");
  EXPECT_EQ(engine_->metrics().num_prompt_tokens - num_prompt_tokens, 7);  // of the good one
}

TEST_P(HeldRequestsTest, AGrammarThatIsKnownToBeInvalidIsRejectedInTheNextStep) {
  Make();
  client_->Release();
  AddConstrained("bad", R"({"format":"idn-email"})");
  RunAll();
  AddConstrained("bad", R"({"format":"idn-email"})");
  if (engine_->OutputFd() >= 0) {
    pollfd fd = {engine_->OutputFd(), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 0), 1);
  }
  const std::vector<RequestOutput> outputs = Step();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_TRUE(outputs[0].rejected);
  EXPECT_FALSE(engine_->HasUnfinishedRequests());
}

TEST_P(HeldRequestsTest, PriorTokensThatTheGrammarExcludesAreRejected) {
  Make();
  client_->Release();
  RequestOptions options;
  options.prior_output_token_ids = {'x'};
  engine_->AddRequest("bad", TextPrompt{"prompt"}, Params(kSlow), options);
  const RequestOutput bad = RunAll().at("bad");
  EXPECT_TRUE(bad.rejected);
  EXPECT_EQ(bad.error, "prior_output_token_ids: structured_outputs does not allow these tokens");
  options.prior_output_token_ids = {'t', 'r'};
  engine_->AddRequest("good", TextPrompt{"prompt"}, Params(kSlow), options);
  EXPECT_EQ(RunAll().at("good").outputs[0].token_ids.size(), 3u);
}

TEST_P(HeldRequestsTest, AnAbortEndsAHeldRequest) {
  MakeBusy();
  AddConstrained("slow", kSlow);
  AddConstrained("other", kSlow);
  engine_->AbortRequest("slow");
  const RequestOutput output = RunAll(1).at("slow");
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_EQ(output.outputs[0].valid, false);
  EXPECT_FALSE(output.rejected);
  client_->Release();
  EXPECT_EQ(RunAll().at("other").outputs[0].token_ids.size(), 5u);
}

TEST_P(HeldRequestsTest, TheEngineEndsWithAHeldRequest) {
  MakeBusy();
  AddConstrained("slow", kSlow);
  client_->Release();
}

TEST_P(HeldRequestsTest, AHeldRequestFailsWithTheEngine) {
  FakeModel model;
  model.throw_at_step = 7;
  // The first request takes the steps before 5. The next ones wait until all requests are added.
  std::promise<void> all_added;
  model.on_step = [may_run = all_added.get_future().share()](int64_t step, const SchedulerOutput&) {
    if (step >= 5) may_run.wait();
  };
  MakeBusy(model);
  AddConstrained("slow", kSlow);
  for (int i = 0; i < 4; ++i) AddConstrained("free " + std::to_string(i), "");
  all_added.set_value();
  const auto outputs = RunAll();
  std::string error = outputs.at("slow").error;
  EXPECT_EQ(outputs.at("free 0").error, error);
  if (GetParam() == ClientKind::kDataParallel) {
    // Both engines reach the step.
    error = error.substr(std::min(error.size(), error.find(": ") + 2));
  }
  EXPECT_EQ(error, "fake failure at step 7");
  EXPECT_FALSE(outputs.at("slow").rejected);
  client_->Release();
  EXPECT_THROW(AddConstrained("slow", kSlow), EngineDeadError);
}

// A waiting caller polls the descriptor, so the end of the compilation must make it readable.
TEST_P(HeldRequestsTest, TheDescriptorIsReadableWhenAGrammarIsCompiled) {
  MakeBusy();
  if (engine_->OutputFd() < 0) {
    EXPECT_EQ(GetParam(), ClientKind::kInproc);  // the caller of an InprocClient does not poll
    return;
  }
  AddConstrained("slow", kSlow);
  Step();
  pollfd fd = {engine_->OutputFd(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  client_->Release();
  EXPECT_EQ(poll(&fd, 1, -1), 1);
}

}  // namespace
}  // namespace vllm
