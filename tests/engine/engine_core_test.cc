#include "engine/core/engine_core.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/config/errors.h"
#include "engine/core/output_queue.h"
#include "engine/frontend/llm_engine.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/allocation_counter.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;

struct Answer {
  std::vector<int32_t> token_ids;
  FinishReason finish_reason = FinishReason::kNone;
  std::string error;
  size_t num_prompt_logprobs = 0;
};
using Answers = std::map<RequestId, Answer>;

void Collect(const EngineCoreOutputs& outputs, Answers& answers) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Answer& answer = answers[outputs[i].request_id];
    EXPECT_EQ(answer.finish_reason, FinishReason::kNone) << "output after the request finished";
    answer.token_ids.insert(answer.token_ids.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
    answer.finish_reason = outputs[i].finish_reason;
    answer.error = outputs[i].error;
    answer.num_prompt_logprobs += outputs[i].prompt_logprobs.num_positions();
  }
}

Answers RunAll(EngineCore& engine_core) {
  Answers answers;
  EngineCoreOutputs outputs;
  for (int step = 0; engine_core.HasRequests() && step < 100000; ++step) {
    engine_core.Step(outputs);
    Collect(outputs, answers);
  }
  EXPECT_FALSE(engine_core.HasRequests());
  EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  return answers;
}

std::vector<int32_t> RandomPrompt(std::mt19937& random, size_t size) {
  std::vector<int32_t> prompt(size);
  for (int32_t& id : prompt) id = static_cast<int32_t>(random() % 259);
  return prompt;
}

TEST(EngineCoreTest, RunsOneRequestToCompletion) {
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory());
  const auto request = FakeRequest(1, {1, 2, 3}, 10);
  engine_core.AddRequest(request);
  const Answers answers = RunAll(engine_core);
  EXPECT_EQ(answers.at(1).token_ids, FakeGenerate(*request, 10, 259));
  EXPECT_EQ(answers.at(1).finish_reason, FinishReason::kLength);
}

TEST(EngineCoreTest, StepOfAnIdleEngineDoesNothing) {
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory());
  EngineCoreOutputs outputs;
  EXPECT_FALSE(engine_core.HasRequests());
  EXPECT_FALSE(engine_core.Step(outputs));
  EXPECT_TRUE(outputs.empty());
}

TEST(EngineCoreTest, RanksReceiveTheLastFinishedRequestEvenIfNothingRuns) {
  std::vector<RequestId> finished;
  FakeModel model;
  model.on_step = [&](int64_t, const SchedulerOutput& step) {
    finished.insert(finished.end(), step.finished_req_ids.begin(), step.finished_req_ids.end());
  };
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory(model));
  engine_core.AddRequest(FakeRequest(1, {1, 2, 3}, 2));
  RunAll(engine_core);
  EXPECT_EQ(finished, std::vector<RequestId>{1});
}

TEST(EngineCoreTest, RequestThatCanNeverFitIsRejectedAndOthersRun) {
  VllmConfig config = FakeConfig();
  config.cache.num_blocks_override = 2;
  EngineCore engine_core(config, FakeExecutorFactory());
  EXPECT_EQ(engine_core.ready().max_model_len, 32);
  engine_core.AddRequest(FakeRequest(1, std::vector<int32_t>(40, 1), 1));
  engine_core.AddRequest(FakeRequest(2, {1}, 1));
  const Answers answers = RunAll(engine_core);
  EXPECT_EQ(answers.at(1).finish_reason, FinishReason::kError);
  EXPECT_NE(answers.at(1).error.find("40 tokens, limit 31"), std::string::npos) << answers.at(1).error;
  EXPECT_EQ(answers.at(2).finish_reason, FinishReason::kLength);
}

TEST(EngineCoreTest, AbortedRequestProducesNoMoreOutput) {
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory());
  engine_core.AddRequest(FakeRequest(1, {1, 2}, 50));
  engine_core.AddRequest(FakeRequest(2, {3}, 3));
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  const std::vector<RequestId> ids = {1, 77};
  engine_core.AbortRequests(ids);
  engine_core.AbortRequests(ids);
  const Answers answers = RunAll(engine_core);
  EXPECT_FALSE(answers.contains(1));
  EXPECT_EQ(answers.at(2).finish_reason, FinishReason::kLength);
}

TEST(EngineCoreTest, AbortedRequestIsNotReportedAsRejected) {
  VllmConfig config = FakeConfig();
  config.cache.num_blocks_override = 2;
  EngineCore engine_core(config, FakeExecutorFactory());
  engine_core.AddRequest(FakeRequest(1, std::vector<int32_t>(40, 1), 1));
  const std::vector<RequestId> ids = {1};
  engine_core.AbortRequests(ids);
  EXPECT_TRUE(RunAll(engine_core).empty());
}

TEST(EngineCoreTest, NaNLogitsFailOnlyTheirRequest) {
  FakeModel model;
  model.fails = [](const EngineCoreRequest& request, const std::vector<int32_t>& tokens) {
    return request.request_id == 2 && tokens.size() == 5;
  };
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory(model));
  for (RequestId id = 1; id <= 3; ++id) engine_core.AddRequest(FakeRequest(id, {1, 2}, 10));
  const Answers answers = RunAll(engine_core);
  EXPECT_EQ(answers.at(2).finish_reason, FinishReason::kError);
  EXPECT_EQ(answers.at(2).token_ids.size(), 3u);
  EXPECT_NE(answers.at(2).error.find("not numbers"), std::string::npos);
  EXPECT_EQ(answers.at(1).token_ids.size(), 10u);
  EXPECT_EQ(answers.at(3).finish_reason, FinishReason::kLength);
}

TEST(EngineCoreTest, PromptLogprobsCoverAChunkedPrompt) {
  VllmConfig config = FakeConfig();
  config.scheduler.max_num_batched_tokens = 7;
  EngineCore engine_core(config, FakeExecutorFactory());
  SamplingParams params;
  params.prompt_logprobs = 2;
  engine_core.AddRequest(FakeRequest(1, std::vector<int32_t>(50, 3), 2, params));
  EXPECT_EQ(RunAll(engine_core).at(1).num_prompt_logprobs, 49u);
}

TEST(EngineCoreTest, StepThrowsIfTheExecutorThrows) {
  FakeModel model;
  model.throw_at_step = 1;
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory(model));
  engine_core.AddRequest(FakeRequest(1, {1}, 10));
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  EXPECT_THROW(engine_core.Step(outputs), std::runtime_error);
}

TEST(EngineCoreTest, StuckSchedulerThrowsWithTheNumberOfRequestsAndFreeBlocks) {
  FakeModel model;
  model.loses_tokens = true;
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory(model));
  engine_core.AddRequest(FakeRequest(1, {1, 2}, 10));
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  try {
    engine_core.Step(outputs);
    FAIL() << "no exception";
  } catch (const std::logic_error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("no request can be scheduled (1 running, 0 waiting, "), std::string::npos) << text;
    EXPECT_NE(text.find(" KV blocks free)"), std::string::npos) << text;
  }
}

TEST(EngineCoreTest, SecondRequestWithTheSameIdFails) {
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory());
  engine_core.AddRequest(FakeRequest(1, {1, 2}, 10));
  engine_core.AddRequest(FakeRequest(1, {3}, 10));
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[1].finish_reason, FinishReason::kError);
  EXPECT_EQ(outputs[1].error, "request id 1 is already in use by an unfinished request");
}

TEST(EngineCoreTest, CancelledStepIsComputedAgain) {
  for (const int64_t num_computed : {0, 1, 2}) {
    FakeModel model;
    model.cancels = [num_computed](int64_t step, const SchedulerOutput&) { return step < 3 ? num_computed : -1; };
    EngineCore engine_core(FakeConfig(), FakeExecutorFactory(model));
    const std::vector<EngineCoreRequestPtr> requests = {FakeRequest(1, std::vector<int32_t>(40, 1), 10),
                                                        FakeRequest(2, std::vector<int32_t>(40, 1), 10)};
    for (const EngineCoreRequestPtr& request : requests) engine_core.AddRequest(request);
    const Answers answers = RunAll(engine_core);
    for (const EngineCoreRequestPtr& request : requests) {
      EXPECT_EQ(answers.at(request->request_id).token_ids, FakeGenerate(*request, 10, 259));
    }
  }
}

// Invariant: a request gets the same tokens however it is batched and scheduled, even if steps are cancelled. The fake
// executor throws if the scheduler breaks the protocol or if the KV of a computed token is wrong.
TEST(EngineCoreTest, RandomConfigurationsProduceTheSameTokens) {
  std::mt19937 random(3);
  int64_t num_cancelled = 0;
  FakeModel model;
  model.cancels = [&](int64_t, const SchedulerOutput& step) -> int64_t {
    if (random() % 8 != 0) return -1;
    ++num_cancelled;
    return static_cast<int64_t>(random() % (step.num_scheduled_tokens.size() + 1));
  };
  for (int round = 0; round < 60; ++round) {
    VllmConfig config = FakeConfig();
    config.model.max_model_len = 200;
    config.cache.enable_prefix_caching = random() % 2 == 0;
    config.cache.num_blocks_override = std::vector<int64_t>{13, 16, 30, 200}[random() % 4];
    config.scheduler.max_num_seqs = std::vector<int64_t>{1, 3, 8, 64}[random() % 4];
    config.scheduler.max_num_batched_tokens = std::vector<int64_t>{5, 16, 100, 2048}[random() % 4];
    config.scheduler.long_prefill_token_threshold = random() % 3 == 0 ? 4 : 0;
    config.scheduler.policy = random() % 2 == 0 ? SchedulingPolicy::kFcfs : SchedulingPolicy::kPriority;
    EngineCore engine_core(config, FakeExecutorFactory(round % 2 == 0 ? model : FakeModel()));

    const std::vector<int32_t> shared = RandomPrompt(random, 70);
    Answers answers;
    std::map<RequestId, EngineCoreRequestPtr> requests;
    std::vector<RequestId> aborted;
    EngineCoreOutputs outputs;
    RequestId next_id = 1;
    for (int step = 0; step < 3000 && (next_id <= 40 || engine_core.HasRequests()); ++step) {
      while (next_id <= 40 && random() % 3 == 0) {
        std::vector<int32_t> prompt(shared.begin(), shared.begin() + static_cast<int>(random() % 60));
        const auto tail = RandomPrompt(random, 1 + random() % 40);
        prompt.insert(prompt.end(), tail.begin(), tail.end());
        auto request =
            std::make_shared<EngineCoreRequest>(*FakeRequest(next_id, prompt, 1 + static_cast<int64_t>(random() % 60)));
        request->priority = static_cast<int64_t>(random() % 3);
        requests[next_id++] = request;
        engine_core.AddRequest(request);
      }
      if (random() % 20 == 0 && next_id > 1) {
        const std::vector<RequestId> ids = {1 + random() % (next_id - 1)};
        if (answers[ids[0]].finish_reason == FinishReason::kNone) aborted.push_back(ids[0]);
        engine_core.AbortRequests(ids);
      }
      engine_core.Step(outputs);
      Collect(outputs, answers);
    }
    ASSERT_FALSE(engine_core.HasRequests());
    ASSERT_EQ(engine_core.scheduler().CheckIntegrity(), "");
    for (const auto& [id, request] : requests) {
      const Answer& answer = answers[id];
      const auto expected = FakeGenerate(*request, *request->sampling_params.max_tokens, 259);
      if (std::find(aborted.begin(), aborted.end(), id) != aborted.end()) {
        ASSERT_TRUE(std::equal(answer.token_ids.begin(), answer.token_ids.end(), expected.begin()));
        continue;
      }
      ASSERT_EQ(answer.finish_reason, FinishReason::kLength) << "round " << round << " request " << id;
      ASSERT_EQ(answer.token_ids, expected) << "round " << round << " request " << id;
    }
  }
  EXPECT_GT(num_cancelled, 100);
}

TEST(EngineCoreTest, RepeatedPromptHitsThePrefixCacheUntilAReset) {
  EngineCore engine_core(FakeConfig(), FakeExecutorFactory());
  engine_core.AddRequest(FakeRequest(1, std::vector<int32_t>(40, 1), 2));
  RunAll(engine_core);
  engine_core.AddRequest(FakeRequest(2, std::vector<int32_t>(40, 1), 2));
  RunAll(engine_core);
  EXPECT_EQ(engine_core.GetStats().prefix_cache.hits, 32);
  EXPECT_TRUE(engine_core.ResetPrefixCache());
  engine_core.AddRequest(FakeRequest(3, std::vector<int32_t>(40, 1), 2));
  RunAll(engine_core);
  EXPECT_EQ(engine_core.GetStats().prefix_cache.hits, 32);
}

TEST(EngineCoreTest, DecodeStepDoesNotAllocateAfterWarmUp) {
  VllmConfig config = FakeConfig();
  config.scheduler.max_num_seqs = 32;
  config.scheduler.max_num_batched_tokens = 2048;
  config.cache.num_blocks_override = 1000;
  FakeModel model;
  model.check_kv = false;
  EngineCore engine_core(config, FakeExecutorFactory(model));
  for (RequestId id = 1; id <= 32; ++id) {
    engine_core.AddRequest(FakeRequest(id, std::vector<int32_t>(20, static_cast<int32_t>(id)), 200));
  }
  OutputQueue queue;
  EngineCoreOutputs step;
  EngineCoreOutputs outputs;
  const auto run = [&](int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      engine_core.Step(step);
      queue.Publish(step);
      // The reader takes the outputs only after every second step, so that deltas merge.
      if (i % 2 == 1) queue.Take(outputs, std::chrono::steady_clock::now());
    }
  };
  run(40);
  const uint64_t before = testing_support::NumAllocations();
  run(100);
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
}

TEST(EngineCoreTest, StreamingADeltaDoesNotAllocateInTheFrontEnd) {
  VllmConfig config = FakeConfig();
  config.scheduler.max_num_seqs = 32;
  config.scheduler.max_num_batched_tokens = 2048;
  FakeModel model;
  model.check_kv = false;
  model.memory_bytes = 1 << 24;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer = testing::MakeByteTokenizer();
  LLMEngine engine(config, tokenizer, MakeInprocClient(config, FakeExecutorFactory(model)));
  SamplingParams params;
  params.ignore_eos = true;
  params.max_tokens = 200;
  params.stop = {"a stop string that never comes"};
  params.output_kind = RequestOutputKind::kDelta;
  for (int32_t i = 0; i < 32; ++i) engine.AddRequest(std::to_string(i), std::vector<int32_t>(20, i), params);
  for (int i = 0; i < 60; ++i) engine.Step();
  const uint64_t before = testing_support::NumAllocations();
  ASSERT_GT(before, 0u);
  for (int i = 0; i < 100; ++i) engine.Step();
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
  EXPECT_EQ(engine.NumUnfinishedRequests(), 32);
}

TEST(GetNumBlocksTest, NullBlockCountsAgainstTheMemory) {
  VllmConfig config = FakeConfig();
  EXPECT_EQ(GetNumBlocks(config, 10 * 100, 100), 9);
  EXPECT_EQ(GetNumBlocks(config, 10 * 100 + 99, 100), 9);
}

TEST(GetNumBlocksTest, KVCacheMemoryBytesLimitsTheMemory) {
  VllmConfig config = FakeConfig();
  config.cache.kv_cache_memory_bytes = 500;
  EXPECT_EQ(GetNumBlocks(config, 1000, 100), 4);
  EXPECT_EQ(GetNumBlocks(config, 300, 100), 2);
}

TEST(GetNumBlocksTest, BlocksAreLimitedToWhatTheSequencesCanUse) {
  VllmConfig config = FakeConfig();
  config.model.max_model_len = 33;
  config.scheduler.max_num_seqs = 4;
  EXPECT_EQ(GetNumBlocks(config, 1 << 30, 100), 12);
}

TEST(GetNumBlocksTest, TooLittleMemoryForOneBlockIsAnErrorWithTheNumbers) {
  VllmConfig config = FakeConfig();
  for (const int64_t memory : {int64_t{-5}, int64_t{0}, int64_t{199}}) {
    try {
      GetNumBlocks(config, memory, 100);
      FAIL();
    } catch (const ResourceError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("= 200 bytes"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(memory) + " bytes available"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace vllm
