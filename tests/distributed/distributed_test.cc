// Tests a distributed job whose ranks are threads with fake models: same tokens as one engine, ranks that die at every
// message, failures while the model loads, and shutdown.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "engine/config/errors.h"
#include "engine/core/engine_monitor.h"
#include "engine/distributed/coordinator.h"
#include "engine/distributed/engine_server.h"
#include "engine/distributed/rank_connection.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/local_link.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;
using testing_support::LocalHub;
using testing_support::LocalLink;

Transport::LinkFactory LinkOf(LocalHub& hub, int rank) {
  return [&hub, rank] { return std::make_unique<LocalLink>(hub, rank); };
}

// Runs a rank other than 0, until the job ends or the rank is killed.
void RunRank(LocalHub& hub, int rank, const FakeModel& model) {
  RankConnection connection(LinkOf(hub, rank), [](int) {});
  try {
    connection.Join({"host" + std::to_string(rank), {0}, 0});
    const VllmConfig config = FakeConfig();
    ThreadClient engine(config, FakeExecutorFactory(model));
    HelloMessage hello;
    hello.identity = "{}";
    const auto tokenizer = testing::MakeByteTokenizer();
    EngineServer(connection, engine, config, tokenizer.get(), nullptr).Serve(hello);
  } catch (const std::exception& error) {
    connection.Send(EncodeFailed({FailureKind::kModel, error.what(), "try another"}));
    connection.WaitForEnd();
  }
}

// A job of `models.size()` ranks. Rank i has models[i].
class Job {
 public:
  explicit Job(std::vector<FakeModel> models, bool reports_deaths = true)
      : hub(static_cast<int>(models.size()), reports_deaths), models_(std::move(models)) {
    for (int rank = 1; rank < hub.size(); ++rank) {
      threads_.emplace_back([this, rank] { RunRank(hub, rank, models_[static_cast<size_t>(rank)]); });
    }
  }
  ~Job() {
    client.reset();
    coordinator.reset();
    for (std::thread& thread : threads_) thread.join();
  }
  // Loads the model on rank 0 and waits for the others.
  void Start() {
    coordinator.emplace(LinkOf(hub, 0));
    coordinator->PlaceRanks({"host0", {0}, 0});
    auto own = std::make_unique<ThreadClient>(FakeConfig(), FakeExecutorFactory(models_[0]));
    coordinator->WaitForRanks();
    client = coordinator->MakeClient(FakeConfig(), std::move(own));
  }

  LocalHub hub;
  std::optional<Coordinator> coordinator;
  std::unique_ptr<DataParallelClient> client;

 private:
  std::vector<FakeModel> models_;
  std::vector<std::thread> threads_;
};

struct Answers {
  std::map<RequestId, std::vector<int32_t>> token_ids;
  std::map<RequestId, Logprobs> logprobs;
  std::map<RequestId, Logprobs> prompt_logprobs;
  std::map<RequestId, FinishReason> finished;
  std::map<RequestId, std::string> errors;

  void Add(const EngineCoreOutputs& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const EngineCoreOutput& output = outputs[i];
      auto& ids = token_ids[output.request_id];
      ids.insert(ids.end(), output.new_token_ids.begin(), output.new_token_ids.end());
      logprobs[output.request_id].Append(output.new_logprobs);
      prompt_logprobs[output.request_id].Append(output.prompt_logprobs);
      if (output.finish_reason == FinishReason::kNone) continue;
      EXPECT_TRUE(finished.emplace(output.request_id, output.finish_reason).second);
      errors[output.request_id] = output.error;
    }
  }
};

Answers ReadUntil(EngineCoreClient& client, size_t num_finished) {
  Answers answers;
  EngineCoreOutputs outputs;
  while (answers.finished.size() < num_finished) {
    if (client.GetOutputs(outputs, 1h)) answers.Add(outputs);
  }
  return answers;
}

// Request `id` of a mix: many share prefixes, every second one is random, and some have logprobs.
EngineCoreRequestPtr MixedRequest(RequestId id) {
  std::vector<int32_t> prompt(static_cast<size_t>(id % 3) * 20, static_cast<int32_t>(id % 3));
  for (RequestId i = 0; i < 1 + id % 40; ++i) prompt.push_back(static_cast<int32_t>((id * 7 + i * 3) % 200));
  SamplingParams params;
  params.temperature = id % 2 == 0 ? 0.0 : 1.0;
  params.ignore_eos = true;
  if (id % 3 == 0) params.logprobs = 2;
  if (id % 5 == 0) params.prompt_logprobs = 1;
  return FakeRequest(id, std::move(prompt), static_cast<int64_t>(1 + id % 30), params);
}

std::vector<EngineCoreRequestPtr> MixedRequests(RequestId count) {
  std::vector<EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= count; ++id) requests.push_back(MixedRequest(id));
  return requests;
}

// The answers of one engine.
Answers Expected(const std::vector<EngineCoreRequestPtr>& requests) {
  ThreadClient client(FakeConfig(), FakeExecutorFactory());
  for (const EngineCoreRequestPtr& request : requests) client.AddRequest(request);
  return ReadUntil(client, requests.size());
}

void ExpectEqual(const Answers& answers, const Answers& expected) {
  EXPECT_EQ(answers.token_ids, expected.token_ids);
  EXPECT_EQ(answers.finished, expected.finished);
  for (const auto& [id, logprobs] : expected.logprobs) {
    EXPECT_EQ(answers.logprobs.at(id).token_ids, logprobs.token_ids) << id;
    EXPECT_EQ(answers.logprobs.at(id).logprobs, logprobs.logprobs) << id;
    EXPECT_EQ(answers.logprobs.at(id).ranks, logprobs.ranks) << id;
    EXPECT_EQ(answers.prompt_logprobs.at(id).token_ids, expected.prompt_logprobs.at(id).token_ids) << id;
  }
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

TEST(DistributedTest, TokensAndLogprobsAreThoseOfOneEngine) {
  const std::vector<EngineCoreRequestPtr> requests = MixedRequests(200);
  const Answers expected = Expected(requests);
  for (const size_t num_ranks : {2, 3, 5}) {
    Job job{std::vector<FakeModel>(num_ranks)};
    job.Start();
    for (const EngineCoreRequestPtr& request : requests) job.client->AddRequest(request);
    ExpectEqual(ReadUntil(*job.client, requests.size()), expected);
    for (const DataParallelEngine& engine : job.client->engines()) EXPECT_GT(engine.num_finished, 0) << engine.name;
  }
}

// Kills a rank after each number of packets, from the first message of the job to the last.
TEST(DistributedTest, RankThatDiesAtAnyMessageLosesAndDoublesNothing) {
  const std::vector<EngineCoreRequestPtr> requests = MixedRequests(60);
  const Answers expected = Expected(requests);
  int num_survived = 0;
  for (int num_packets = 2; num_packets < 40; ++num_packets) {
    Job job(std::vector<FakeModel>(3));
    job.hub.KillAfter(1, num_packets);
    job.Start();
    for (const EngineCoreRequestPtr& request : requests) job.client->AddRequest(request);
    ExpectEqual(ReadUntil(*job.client, requests.size()), expected);
    num_survived += job.client->TakeWarning().empty() ? 1 : 0;
  }
  EXPECT_LT(num_survived, 38);
}

TEST(DistributedTest, AllOtherRanksMayDie) {
  const std::vector<EngineCoreRequestPtr> requests = MixedRequests(100);
  const Answers expected = Expected(requests);
  Job job(std::vector<FakeModel>(4));
  job.Start();
  for (const EngineCoreRequestPtr& request : requests) job.client->AddRequest(request);
  for (const int rank : {2, 1, 3}) job.hub.Kill(rank);
  ExpectEqual(ReadUntil(*job.client, requests.size()), expected);
}

TEST(DistributedTest, RequestsOfADeadEngineContinueAfterTheirLastToken) {
  // Rank 1 fails in its fourth step, so its requests have three tokens each.
  Job job({FakeModel(), ThrowingAt(3)});
  job.Start();
  std::vector<EngineCoreRequestPtr> requests;
  SamplingParams params;
  params.ignore_eos = true;
  params.logprobs = 1;
  params.prompt_logprobs = 1;
  for (RequestId id = 1; id <= 6; ++id) requests.push_back(FakeRequest(id, {1, 2, 3}, 20, params));
  for (const EngineCoreRequestPtr& request : requests) job.client->AddRequest(request);
  ExpectEqual(ReadUntil(*job.client, requests.size()), Expected(requests));
  EXPECT_EQ(job.client->TakeWarning(),
            "rank 1 (host1) has failed (fake failure at step 3); its 3 unfinished sequences continue elsewhere");
  EXPECT_EQ(job.client->TakeWarning(), "");
}

TEST(DistributedTest, DeathOfTheEngineOfRank0EndsTheJob) {
  Job job({ThrowingAt(1), Endless(2)});
  job.Start();
  job.client->AddRequest(FakeRequest(1, {1}, 100));
  job.client->AddRequest(FakeRequest(2, {1}, 100));
  const std::string cause = MessageOf<EngineDeadError>([&] {
    EngineCoreOutputs outputs;
    while (true) job.client->GetOutputs(outputs, 1h);
  });
  EXPECT_EQ(cause, "rank 0 (host0): fake failure at step 1");
}

TEST(DistributedTest, AbortReachesTheRank) {
  // Each rank's only request runs until it is aborted.
  Job job({Endless(1), Endless(2)});
  job.Start();
  job.client->AddRequest(FakeRequest(1, {1}, 100));
  job.client->AddRequest(FakeRequest(2, {1}, 100));
  job.client->AbortRequests(std::vector<RequestId>{1, 2}, AbortUrgency::kPrompt);
  job.client->AddRequest(FakeRequest(3, {1}, 3));
  job.client->AddRequest(FakeRequest(4, {1}, 3));
  const Answers answers = ReadUntil(*job.client, 2);
  EXPECT_TRUE(answers.finished.contains(3) && answers.finished.contains(4));
}

TEST(DistributedTest, MonitorAbortsARequestOfAnotherRank) {
  Job job({Endless(1), Endless(2)});
  job.Start();
  job.client->AddRequest(FakeRequest(1, {1}, 100));
  job.client->AddRequest(FakeRequest(2, {1}, 100));
  job.client->monitor()->AbortRequest(2);
  job.client->monitor()->AbortRequest(1);
  EXPECT_EQ(ReadUntil(*job.client, 2).finished,
            (std::map<RequestId, FinishReason>{{1, FinishReason::kAbort}, {2, FinishReason::kAbort}}));
}

TEST(DistributedTest, PauseReachesAllRanks) {
  Job job(std::vector<FakeModel>(3));
  job.Start();
  job.client->monitor()->SetAdmissionPaused(true);
  EngineCoreOutputs outputs;
  while (!outputs.stats.admission_paused) job.client->GetOutputs(outputs, 1ms);
  job.client->monitor()->SetAdmissionPaused(false);
  job.client->AddRequest(FakeRequest(1, {1}, 3));
  EXPECT_TRUE(ReadUntil(*job.client, 1).finished.contains(1));
}

TEST(DistributedTest, ShutdownStopsStepsThatDoNotEnd) {
  Job job({Endless(1), Endless(2)});
  job.Start();
  job.client->AddRequest(FakeRequest(1, {1}, 100));
  job.client->AddRequest(FakeRequest(2, {1}, 100));
  job.client->Shutdown(ShutdownMode::kAbort);
}

TEST(DistributedTest, DrainFinishesTheRequestsOfAllRanks) {
  Job job(std::vector<FakeModel>(3));
  job.Start();
  for (RequestId id = 1; id <= 20; ++id) job.client->AddRequest(MixedRequest(id));
  job.client->Shutdown(ShutdownMode::kDrain);
  EngineCoreOutputs outputs;
  Answers answers;
  while (job.client->GetOutputs(outputs, 1h)) answers.Add(outputs);
  EXPECT_EQ(answers.finished.size(), 20u);
}

// A request with a constraint, which the fake models do not obey.
EngineCoreRequestPtr ConstrainedRequest(RequestId id, const std::string& schema) {
  auto request = std::make_shared<EngineCoreRequest>(*FakeRequest(id, {static_cast<int32_t>(id)}, 4));
  request->sampling_params.structured_outputs = StructuredOutputsParams{schema};
  return request;
}

// Rank 0 has no front end here, so only the other rank looks at the constraints.
TEST(DistributedTest, ARankCompilesTheGrammarsOfItsRequests) {
  Job job(std::vector<FakeModel>(2));
  job.Start();
  for (RequestId id = 1; id <= 20; ++id) {
    job.client->AddRequest(ConstrainedRequest(id, R"({"const":)" + std::to_string(id) + "}"));
  }
  for (RequestId id = 21; id <= 24; ++id) {
    job.client->AddRequest(ConstrainedRequest(id, R"({"format":"idn-email"})"));
  }
  const Answers answers = ReadUntil(*job.client, 24);
  int num_rejected = 0;
  for (const auto& [id, error] : answers.errors) {
    if (id > 20 && !error.empty()) {
      ++num_rejected;
      EXPECT_EQ(error, "JSON schema: #/format: not supported (idn-email)");
      continue;
    }
    EXPECT_EQ(error, "") << id;
    EXPECT_EQ(answers.token_ids.at(id).size(), 4u) << id;
  }
  EXPECT_GT(num_rejected, 0);
}

TEST(DistributedTest, DrainFinishesRequestsWhoseGrammarsAreBeingCompiled) {
  Job job(std::vector<FakeModel>(2));
  job.Start();
  for (RequestId id = 1; id <= 20; ++id) {
    job.client->AddRequest(ConstrainedRequest(id, R"({"const":)" + std::to_string(id) + "}"));
  }
  job.client->Shutdown(ShutdownMode::kDrain);
  EngineCoreOutputs outputs;
  Answers answers;
  while (job.client->GetOutputs(outputs, 1h)) answers.Add(outputs);
  EXPECT_EQ(answers.finished.size(), 20u);
}

// The aborts may come before, while or after the grammars are compiled.
TEST(DistributedTest, AbortsReachRequestsWhoseGrammarsAreBeingCompiled) {
  Job job(std::vector<FakeModel>(2));
  job.Start();
  std::vector<RequestId> ids;
  for (RequestId id = 1; id <= 20; ++id) {
    job.client->AddRequest(ConstrainedRequest(id, R"({"const":)" + std::to_string(id) + "}"));
    if (id <= 10) ids.push_back(id);
  }
  job.client->AbortRequests(ids, AbortUrgency::kPrompt);
  for (RequestId id = 11; id <= 20; ++id) job.client->monitor()->AbortRequest(id);
  EXPECT_EQ(ReadUntil(*job.client, 10).finished.size(), 10u);
}

TEST(DistributedTest, PrefixCachesOfAllRanksAreReset) {
  Job job(std::vector<FakeModel>(2));
  job.Start();
  EXPECT_TRUE(job.client->ResetPrefixCache());
}

TEST(DistributedTest, LongestSequenceIsThatOfTheSmallestRank) {
  FakeModel small;
  small.memory_bytes = 6 * 1024;
  small.block_bytes = 1024;
  Job job({FakeModel(), small});
  job.Start();
  EXPECT_EQ(job.client->ready().max_model_len, 5 * 16);
}

TEST(DistributedTest, RankThatCannotLoadTheModelIsNamed) {
  FakeModel failing;
  failing.throw_at_load = true;
  Job job({FakeModel(), FakeModel(), failing});
  try {
    job.Start();
    ADD_FAILURE() << "no exception";
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(), "rank 2 (host2): fake failure at load");
    EXPECT_EQ(error.hint(), "try another");
  }
}

TEST(DistributedTest, EndOfTheJobThatArrivesWithThePlaceIsNotLost) {
  class Ignored final : public Transport::Receiver {
    void OnMessage(int /*from*/, std::string_view /*message*/) override {}
    void OnFailure(int /*rank*/, const std::string& /*cause*/) override {}
  };
  LocalHub hub(2);
  Ignored receiver;
  Transport rank0(LinkOf(hub, 0), receiver, {});
  rank0.Send(1, EncodePlace({.num_local_processes = 3}));
  rank0.Send(1, EncodeShutdown({}));
  std::promise<void> has_ended;
  RankConnection connection(LinkOf(hub, 1), [&has_ended](int) { has_ended.set_value(); });
  has_ended.get_future().wait();

  EXPECT_EQ(connection.Join({"host1", {0}, 0}).num_local_processes, 3);
  std::vector<std::string> messages;
  connection.TakeMessages(messages);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(TypeOf(messages[0]), MessageType::kShutdown);
}

TEST(DistributedTest, RankThatDiesWhileItLoadsIsNamed) {
  Job job(std::vector<FakeModel>(2));
  job.hub.KillAfter(1, 1);
  EXPECT_EQ(MessageOf<ResourceError>([&] { job.Start(); }),
            "rank 1 (host1) has failed before it had loaded the model: killed");
}

TEST(DistributedTest, JobThatEndsEarlyEndsAllRanks) {
  Job job(std::vector<FakeModel>(3));
  job.coordinator.emplace(LinkOf(job.hub, 0));
}

TEST(DistributedTest, RequestThatDoesNotFitTheModelOfARankIsRejected) {
  Job job(std::vector<FakeModel>(2));
  job.Start();
  job.client->AddRequest(FakeRequest(1, {1}, 3));
  job.client->AddRequest(FakeRequest(2, {9999}, 3));
  const Answers answers = ReadUntil(*job.client, 2);
  EXPECT_EQ(answers.finished.at(2), FinishReason::kError);
  EXPECT_EQ(answers.errors.at(2), "prompt: token id outside the vocabulary (9999)");
}

}  // namespace
}  // namespace vllm
