#include "engine/frontend/llm_engine.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <latch>
#include <map>
#include <random>

#include "engine/config/errors.h"
#include "engine/frontend/input_processor.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeModel;
using testing::kEos;

enum class ClientKind { kInproc, kThread };

// Returns a model that continues every prompt with `answer`, and then with EOS tokens.
FakeModel Reciting(std::vector<int32_t> answer) {
  FakeModel model;
  model.next_token = [answer = std::move(answer)](const EngineCoreRequest& request,
                                                  const std::vector<int32_t>& tokens) -> int32_t {
    const size_t position = tokens.size() - request.prompt_token_ids.size();
    return position < answer.size() ? answer[position] : kEos;
  };
  return model;
}

std::unique_ptr<EngineCoreClient> MakeClient(ClientKind kind, const VllmConfig& config, const FakeModel& model) {
  return kind == ClientKind::kInproc ? MakeInprocClient(config, FakeExecutorFactory(model))
                                     : MakeThreadClient(config, FakeExecutorFactory(model));
}

// All outputs of a request, joined.
struct Joined {
  std::map<int64_t, std::string> text;
  std::map<int64_t, std::vector<int32_t>> token_ids;
  std::map<int64_t, CompletionOutput> last;
  RequestOutput output;
};

class LLMEngineTest : public ::testing::TestWithParam<ClientKind> {
 protected:
  LLMEngineTest() {
    config_.model.eos_token_ids = {kEos};
    params_.temperature = 0.0;
    params_.output_kind = RequestOutputKind::kDelta;
  }

  LLMEngine Make(const FakeModel& model) {
    return LLMEngine(config_, tokenizer_, MakeClient(GetParam(), config_, model));
  }

  static void Join(const std::vector<RequestOutput>& outputs, std::map<std::string, Joined>& all) {
    for (const RequestOutput& output : outputs) {
      Joined& joined = all[output.request_id];
      EXPECT_FALSE(joined.output.finished) << "output after the request finished";
      joined.output = output;
      for (const CompletionOutput& completion : output.outputs) {
        joined.text[completion.index] += completion.text;
        auto& ids = joined.token_ids[completion.index];
        ids.insert(ids.end(), completion.token_ids.begin(), completion.token_ids.end());
        joined.last[completion.index] = completion;
      }
    }
  }

  static std::map<std::string, Joined> RunAll(LLMEngine& engine) {
    std::map<std::string, Joined> all;
    while (engine.HasUnfinishedRequests()) Join(engine.Step(), all);
    return all;
  }

  VllmConfig config_ = FakeConfig();
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  SamplingParams params_;
};

INSTANTIATE_TEST_SUITE_P(Clients, LLMEngineTest, ::testing::Values(ClientKind::kInproc, ClientKind::kThread),
                         [](const auto& p) { return p.param == ClientKind::kInproc ? "Inproc" : "Thread"; });

TEST_P(LLMEngineTest, AnswersInTextUntilEos) {
  LLMEngine engine = Make(Reciting(Bytes("grüß dich 😀")));
  engine.AddRequest("a", TextPrompt{"hello"}, params_);
  EXPECT_EQ(engine.NumUnfinishedRequests(), 1);
  const auto all = RunAll(engine);
  const Joined& joined = all.at("a");
  EXPECT_EQ(joined.text.at(0), "grüß dich 😀");
  EXPECT_EQ(joined.token_ids.at(0).back(), kEos);
  EXPECT_EQ(joined.last.at(0).finish_reason, FinishReason::kStop);
  EXPECT_TRUE(joined.output.finished);
  const RequestMetrics& metrics = joined.output.metrics;
  EXPECT_EQ(metrics.num_generation_tokens, static_cast<int64_t>(joined.token_ids.at(0).size()));
  EXPECT_LE(metrics.arrival_time, metrics.scheduled_time);
  EXPECT_LE(metrics.scheduled_time, metrics.first_token_time);
  EXPECT_LE(metrics.first_token_time, metrics.last_token_time);
  EXPECT_LE(metrics.last_token_time, metrics.finished_time);
}

TEST_P(LLMEngineTest, StopStringEndsTheRequestAtItsLastTokenEvenIfTheEngineRanAhead) {
  LLMEngine engine = Make(Reciting(Bytes("one two three four five")));
  params_.stop = {"three"};
  params_.logprobs = 1;
  engine.AddRequest("a", TextPrompt{"count"}, params_);
  const auto all = RunAll(engine);
  EXPECT_EQ(all.at("a").text.at(0), "one two ");
  EXPECT_EQ(all.at("a").token_ids.at(0), Bytes("one two three"));
  EXPECT_EQ(std::get<std::string>(all.at("a").last.at(0).stop_reason), "three");
  // The abort was queued before GetStats is called, so the engine drops the request before it replies.
  EXPECT_EQ(engine.client().GetStats().num_running_reqs, 0);
}

TEST_P(LLMEngineTest, RejectedRequestLeavesTheEngineUnchanged) {
  LLMEngine engine = Make(Reciting(Bytes("ok")));
  params_.temperature = -1;
  EXPECT_THROW(engine.AddRequest("a", TextPrompt{"x"}, params_), RequestError);
  params_.temperature = 0;
  EXPECT_THROW(engine.AddRequest("a", std::vector<int32_t>(256, 1), params_), RequestError);
  EXPECT_FALSE(engine.HasUnfinishedRequests());
  engine.AddRequest("a", TextPrompt{"x"}, params_);
  EXPECT_THROW(engine.AddRequest("a", TextPrompt{"x"}, params_), RequestError);
  EXPECT_EQ(RunAll(engine).at("a").text.at(0), "ok");
  engine.AddRequest("a", TextPrompt{"x"}, params_);
  EXPECT_EQ(RunAll(engine).at("a").text.at(0), "ok");
}

TEST_P(LLMEngineTest, RequestsThatWaitForMemoryHaveTheSameOutputs) {
  params_.logprobs = 5;
  params_.max_tokens = 8;
  params_.output_kind = RequestOutputKind::kFinalOnly;
  const auto run = [&] {
    LLMEngine engine = Make(Reciting(Bytes("answer")));
    for (int i = 0; i < 8; ++i) engine.AddRequest("r" + std::to_string(i), TextPrompt{"hello"}, params_);
    EXPECT_EQ(engine.NumUnfinishedRequests(), 8);
    std::map<std::string, std::string> texts;
    for (const auto& [id, joined] : RunAll(engine)) texts[id] = joined.text.at(0);
    return texts;
  };
  const std::map<std::string, std::string> together = run();
  EXPECT_EQ(together.size(), 8u);
  // The limit is too small for all eight requests at the same time.
  config_.max_output_memory_bytes = 60000;
  EXPECT_EQ(run(), together);
  config_.max_output_memory_bytes = 1000;
  LLMEngine engine = Make(Reciting(Bytes("answer")));
  EXPECT_THROW(engine.AddRequest("a", TextPrompt{"hello"}, params_), RequestError);
}

TEST_P(LLMEngineTest, StepReturnsImmediatelyIfThereIsNothingToWaitFor) {
  LLMEngine engine = Make(FakeModel());
  EXPECT_TRUE(engine.Step(1h).empty());
  engine.AbortRequest("unknown");
}

TEST_P(LLMEngineTest, AbortReturnsAFinalOutputAndOtherRequestsContinue) {
  FakeModel model;
  model.next_token = [](const EngineCoreRequest&, const std::vector<int32_t>&) { return 'x'; };
  // With a ThreadClient, the engine's thread waits in its fourth step until the abort is queued.
  const auto aborted = std::make_shared<std::latch>(GetParam() == ClientKind::kThread ? 1 : 0);
  model.on_step = [aborted](int64_t step, const SchedulerOutput&) {
    if (step == 3) aborted->wait();
  };
  LLMEngine engine = Make(model);
  params_.max_tokens = 100;
  params_.output_kind = RequestOutputKind::kCumulative;
  engine.AddRequest("a", TextPrompt{"x"}, params_);
  engine.AddRequest("b", TextPrompt{"x"}, params_);
  std::map<std::string, Joined> all;
  while (!all.contains("a")) {
    for (const auto& output : engine.Step()) all[output.request_id].output = output;
  }
  engine.AbortRequest("a");
  if (!aborted->try_wait()) aborted->count_down();
  if (engine.OutputFd() >= 0) {
    pollfd entry{engine.OutputFd(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 0), 1);
  }
  EXPECT_EQ(engine.NumUnfinishedRequests(), 2);
  while (engine.HasUnfinishedRequests()) {
    for (const auto& output : engine.Step()) all[output.request_id].output = output;
  }
  EXPECT_EQ(all["a"].output.outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_GE(all["a"].output.outputs[0].token_ids.size(), 1u);
  EXPECT_EQ(all["b"].output.outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(all["b"].output.outputs[0].token_ids.size(), 100u);
}

TEST_P(LLMEngineTest, ChildrenShareThePromptsKVAndDifferBySeed) {
  config_.scheduler.max_num_batched_tokens = 2048;
  LLMEngine engine = Make(FakeModel());
  params_ = {};
  params_.n = 3;
  params_.seed = 40;
  params_.max_tokens = 8;
  params_.ignore_eos = true;
  params_.output_kind = RequestOutputKind::kFinalOnly;
  const std::vector<int32_t> prompt(100, 7);
  engine.AddRequest("n", prompt, params_);
  auto all = RunAll(engine);
  ASSERT_EQ(all.at("n").output.outputs.size(), 3u);
  // The full blocks contain 96 of the 100 prompt tokens. The second and third child find them in the
  // prefix cache.
  EXPECT_EQ(engine.client().GetStats().prefix_cache.hits, 2 * 96);
  const auto together = all.at("n").token_ids;
  EXPECT_NE(together.at(0), together.at(1));
  // Child i has the same tokens as a request with n = 1 and the seed 40 + i.
  params_.n = 1;
  for (int64_t i = 0; i < 3; ++i) {
    params_.seed = 40 + static_cast<uint64_t>(i);
    engine.AddRequest("one", prompt, params_);
    EXPECT_EQ(RunAll(engine).at("one").token_ids.at(0), together.at(i));
  }
}

TEST_P(LLMEngineTest, ParallelSamplingReturnsTheSameTokensWithoutThePrefixCache) {
  std::vector<std::map<int64_t, std::vector<int32_t>>> results;
  for (const bool caching : {true, false}) {
    config_.cache.enable_prefix_caching = caching;
    LLMEngine engine = Make(FakeModel());
    params_ = {};
    params_.n = 5;
    params_.max_tokens = 20;
    params_.output_kind = RequestOutputKind::kDelta;
    engine.AddRequest("n", std::vector<int32_t>(60, 7), params_);
    results.push_back(RunAll(engine).at("n").token_ids);
  }
  EXPECT_EQ(results[0].size(), 5u);
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(LLMEngineTest, PromptLogprobsAreReturnedWithParallelSampling) {
  LLMEngine engine = Make(FakeModel());
  params_ = {};
  params_.n = 2;
  params_.max_tokens = 2;
  params_.prompt_logprobs = 1;
  params_.output_kind = RequestOutputKind::kFinalOnly;
  engine.AddRequest("n", std::vector<int32_t>(40, 7), params_);
  const auto all = RunAll(engine);
  EXPECT_EQ(all.at("n").output.prompt_logprobs.num_positions(), 39u);
  EXPECT_EQ(all.at("n").output.prompt_token_ids.size(), 40u);
}

TEST_P(LLMEngineTest, NaNLogitsFailOnlyTheirRequest) {
  FakeModel model;
  model.fails = [](const EngineCoreRequest& request, const std::vector<int32_t>& tokens) {
    return request.prompt_token_ids.size() == 3 && tokens.size() == 6;
  };
  LLMEngine engine = Make(model);
  params_.ignore_eos = true;
  params_.max_tokens = 10;
  engine.AddRequest("bad", std::vector<int32_t>(3, 1), params_);
  engine.AddRequest("good", std::vector<int32_t>(4, 1), params_);
  const auto all = RunAll(engine);
  EXPECT_EQ(all.at("bad").last.at(0).finish_reason, FinishReason::kError);
  EXPECT_NE(all.at("bad").output.error, "");
  EXPECT_EQ(all.at("bad").token_ids.at(0).size(), 3u);
  EXPECT_EQ(all.at("good").last.at(0).finish_reason, FinishReason::kLength);
}

TEST_P(LLMEngineTest, EngineFailureEndsEveryPendingRequestWithTheCauseThenThrows) {
  FakeModel model;
  // The model fails only after all requests have been added.
  const auto armed = std::make_shared<std::atomic<bool>>(false);
  model.on_step = [armed](int64_t step, const SchedulerOutput&) {
    if (step < 5) return;
    armed->wait(false);
    throw std::runtime_error("fake failure at step 5");
  };
  LLMEngine engine = Make(model);
  params_.ignore_eos = true;
  params_.max_tokens = 50;
  engine.AddRequest("a", TextPrompt{"x"}, params_);
  engine.AddRequest("b", TextPrompt{"y"}, params_);
  SamplingParams many;
  many.n = 4;
  many.max_tokens = 50;
  many.output_kind = RequestOutputKind::kFinalOnly;
  engine.AddRequest("n", std::vector<int32_t>(40, 7), many);
  *armed = true;
  armed->notify_all();
  const auto all = RunAll(engine);
  for (const char* id : {"a", "b", "n"}) {
    EXPECT_EQ(all.at(id).output.error, "fake failure at step 5");
    for (const auto& [index, last] : all.at(id).last) EXPECT_EQ(last.finish_reason, FinishReason::kError);
  }
  EXPECT_EQ(all.at("n").last.size(), 4u);
  EXPECT_THROW(engine.Step(), EngineDeadError);
  EXPECT_THROW(engine.AddRequest("c", TextPrompt{"x"}, params_), EngineDeadError);
  engine.AbortRequest("a");
}

TEST_P(LLMEngineTest, MaxModelLenIsLimitedToWhatTheKVCacheCanHold) {
  config_.cache.num_blocks_override = 3;
  LLMEngine engine = Make(FakeModel());
  EXPECT_EQ(engine.max_model_len(), 48);
  EXPECT_EQ(engine.config().cache.num_blocks, 3);
  params_.ignore_eos = true;
  engine.AddRequest("a", std::vector<int32_t>(10, 1), params_);
  EXPECT_EQ(RunAll(engine).at("a").token_ids.at(0).size(), 38u);
}

// Under any schedule, the delta, cumulative and final outputs of a request have the same text and tokens.
TEST_P(LLMEngineTest, EveryOutputKindAndScheduleReturnsTheSameText) {
  std::map<std::string, std::string> expected;
  std::mt19937 random(9);
  for (int round = 0; round < 12; ++round) {
    const auto kind = static_cast<RequestOutputKind>(round % 3);
    config_.scheduler.max_num_seqs = round % 5 < 2 ? 2 : 16;
    config_.scheduler.max_num_batched_tokens = round % 2 == 0 ? 16 : 512;
    config_.cache.enable_prefix_caching = round % 4 < 2;
    config_.cache.num_blocks_override = 20;
    FakeModel model;
    model.next_token = [](const EngineCoreRequest& request, const std::vector<int32_t>& tokens) -> int32_t {
      uint64_t h = request.sampling_params.seed.value_or(0);
      for (const int32_t id : tokens) h = testing::FakeMix(h, static_cast<uint64_t>(id));
      return static_cast<int32_t>("ab\xC3\xA9\xE2\x82\xAC "[h % 9]) & 0xFF;
    };
    LLMEngine engine = Make(model);
    std::vector<int> order(30);
    for (int i = 0; i < 30; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order) {
      SamplingParams params;
      params.n = i % 5 == 0 ? 3 : 1;
      params.max_tokens = 5 + i;
      params.stop = i % 2 == 0 ? std::vector<std::string>{"aba", "é"} : std::vector<std::string>{};
      params.include_stop_str_in_output = i % 4 == 0;
      params.min_tokens = i % 3;
      params.output_kind = kind;
      engine.AddRequest("r" + std::to_string(i), std::vector<int32_t>(static_cast<size_t>(1 + i), 'x'), params);
    }
    for (const auto& [id, joined] : RunAll(engine)) {
      std::string result;
      for (const auto& [index, last] : joined.last) {
        const bool delta = kind == RequestOutputKind::kDelta;
        result += (delta ? joined.text.at(index) : last.text) + "|";
        for (const int32_t token : delta ? joined.token_ids.at(index) : last.token_ids)
          result += std::to_string(token) + " ";
        result += std::string(ToString(last.finish_reason)) + "\n";
      }
      const auto [it, inserted] = expected.emplace(id, result);
      ASSERT_EQ(it->second, result) << id << " in round " << round << (inserted ? " (new)" : "");
    }
  }
  EXPECT_EQ(expected.size(), 30u);
}

}  // namespace
}  // namespace vllm
