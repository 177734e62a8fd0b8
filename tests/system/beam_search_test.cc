// Tests beam search on app/guide_model: its results are those of a loop of requests for one token each, as vLLM does
// it, to the last bit, and do not depend on batching or scheduling.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cancelling_executor.h"
#include "tests/support/reference_beam_search.h"
#include "tests/support/test_isa.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::CancellingExecutor;
using testing_support::EngineSetup;
using testing_support::MakeConfig;
using testing_support::MixedRequests;
using testing_support::ReferenceBeamSearch;
using testing_support::ReferenceSequence;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::RunResult;
using testing_support::TestRequest;
using testing_support::WithTestIsa;

std::string Directory() { return std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model"; }

SamplingParams BeamParams(int64_t width, double length_penalty, int64_t max_tokens, bool ignore_eos) {
  SamplingParams params;
  params.use_beam_search = true;
  params.beam_width = width;
  params.length_penalty = length_penalty;
  params.max_tokens = max_tokens;
  params.ignore_eos = ignore_eos;
  params.output_kind = RequestOutputKind::kFinalOnly;
  return params;
}

// Beams of several widths between other requests.
std::vector<TestRequest> Requests() {
  std::vector<TestRequest> requests = MixedRequests(16, 60);
  const char* prompts[] = {"How do I run a batch of prompts?", "What does exit status 3 mean?", "vllmcli chat"};
  for (int i = 0; i < 6; ++i) {
    TestRequest request;
    request.id = "beams " + std::to_string(i);
    request.prompt = TextPrompt{prompts[i % 3]};
    request.params = BeamParams(1 + i, i % 2 == 0 ? 1.0 : 0.5, 10 + 6 * i, i % 3 == 2);
    request.options.priority = i % 3;
    requests.insert(requests.begin() + 2 * i, request);
  }
  return requests;
}

std::vector<CompletionOutput> Outputs(LLMEngine& engine, const Prompt& prompt, const SamplingParams& params) {
  engine.AddRequest("request", prompt, params);
  while (engine.HasUnfinishedRequests()) {
    for (const RequestOutput& output : engine.Step()) {
      EXPECT_EQ(output.error, "");
      if (output.finished) return output.outputs;
    }
  }
  ADD_FAILURE() << "no output";
  return {};
}

class BeamSearchTest : public testing::Test {
 protected:
  void SetUp() override { tokenizer_ = tokenizer::LoadTokenizerJson(Directory() + "/tokenizer.json"); }

  std::unique_ptr<LLMEngine> MakeEngine(VllmConfig config) const {
    config.max_logprobs = -1;
    config = WithTestIsa(config);
    return std::make_unique<LLMEngine>(config, tokenizer_, MakeInprocClient(config, MakeExecutor));
  }

  // Checks that beam searches give what a loop of requests for one token each gives.
  void ExpectLoop(const VllmConfig& config) const;

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
};

void BeamSearchTest::ExpectLoop(const VllmConfig& config) const {
  const std::unique_ptr<LLMEngine> engine = MakeEngine(config);
  const std::set<int32_t> eos(config.model.eos_token_ids.begin(), config.model.eos_token_ids.end());
  for (const char* text : {"How do I run a batch of prompts?", "vllmcli"}) {
    const std::vector<int32_t> prompt = tokenizer_->Encode(text, true);
    const auto top = [&](const std::vector<int32_t>& generated, size_t count) {
      std::vector<int32_t> ids = prompt;
      ids.insert(ids.end(), generated.begin(), generated.end());
      SamplingParams params;
      params.temperature = 0.0;
      params.max_tokens = 1;
      params.logprobs = static_cast<int64_t>(count);
      params.output_kind = RequestOutputKind::kFinalOnly;
      const Logprobs logprobs = Outputs(*engine, ids, params).at(0).logprobs;
      std::vector<std::pair<int32_t, float>> result;
      for (size_t i = 1; i < logprobs.width; ++i) result.emplace_back(logprobs.token_ids[i], logprobs.logprobs[i]);
      return result;
    };
    for (const int64_t width : {1, 2, 5}) {
      for (const double penalty : {0.0, 1.0, 2.0}) {
        const bool ignore_eos = width == 2;
        const auto expected =
            ReferenceBeamSearch(top, static_cast<size_t>(width), penalty, 20, ignore_eos ? std::set<int32_t>() : eos);
        const std::vector<CompletionOutput> outputs =
            Outputs(*engine, prompt, BeamParams(width, penalty, 20, ignore_eos));
        ASSERT_EQ(outputs.size(), expected.size());
        for (size_t rank = 0; rank < expected.size(); ++rank) {
          EXPECT_EQ(outputs[rank].index, static_cast<int64_t>(rank));
          EXPECT_EQ(outputs[rank].token_ids, expected[rank].token_ids);
          EXPECT_EQ(outputs[rank].cumulative_logprob, expected[rank].cumulative_logprob);
          EXPECT_EQ(outputs[rank].score, expected[rank].score);
          EXPECT_EQ(outputs[rank].finish_reason, expected[rank].has_eos ? FinishReason::kStop : FinishReason::kLength);
        }
      }
    }
  }
}

TEST_F(BeamSearchTest, EqualsALoopOfRequestsForOneToken) { ExpectLoop(MakeConfig(Directory(), {})); }

TEST_F(BeamSearchTest, EqualsALoopOfRequestsForOneTokenOnTwoRanks) {
  ExpectLoop(MakeConfig(Directory(), {.ranks = 2}));
}

TEST_F(BeamSearchTest, WidthOneIsGreedy) {
  const std::unique_ptr<LLMEngine> engine = MakeEngine(MakeConfig(Directory(), {}));
  const Prompt prompt = TextPrompt{"How do I run a batch of prompts?"};
  SamplingParams greedy;
  greedy.temperature = 0.0;
  greedy.max_tokens = 30;
  greedy.ignore_eos = true;
  greedy.output_kind = RequestOutputKind::kFinalOnly;
  const CompletionOutput expected = Outputs(*engine, prompt, greedy).at(0);
  const CompletionOutput beam = Outputs(*engine, prompt, BeamParams(1, 1.0, 30, true)).at(0);
  EXPECT_EQ(beam.token_ids, expected.token_ids);
  EXPECT_EQ(beam.text, expected.text);
}

TEST_F(BeamSearchTest, SchedulesDoNotChangeResults) {
  const std::vector<TestRequest> requests = Requests();
  const auto run = [&](const EngineSetup& setup, const RunHow& how = {}) {
    return RunRequests(MakeConfig(Directory(), setup), tokenizer_, requests, how);
  };
  const std::map<std::string, std::string> base = run({.max_num_seqs = 6}, {.one_at_a_time = true}).outputs;
  const auto expect_base = [&](const RunResult& result, const char* what) {
    ASSERT_EQ(result.outputs.size(), base.size()) << what;
    for (const auto& [id, output] : base) EXPECT_EQ(result.outputs.at(id), output) << what << " " << id;
  };
  for (const auto& [id, output] : base) EXPECT_NE(output.rfind("rejected", 0), 0u) << id << " " << output;

  expect_base(run({}), "all at once");
  expect_base(run({.max_num_batched_tokens = 16}), "small steps");
  expect_base(run({.long_prefill_token_threshold = 7}), "small chunks");
  expect_base(run({.prefix_caching = false}), "no prefix caching");
  expect_base(run({.threads = 2}), "two threads");
  expect_base(run({.engines = 2}), "two engines");
  expect_base(run({.policy = SchedulingPolicy::kPriority}), "priorities");
  for (const bool caching : {true, false}) {
    const RunResult result = run({.prefix_caching = caching, .num_blocks = 26}, {.in_process = true});
    EXPECT_GT(result.stats.num_preemptions, 0);
    expect_base(result, "preemptions");
  }
  const auto plan = [](int64_t attempt) { return attempt % 3 == 0 ? -1 : attempt % 7; };
  expect_base(run({}, {.in_process = true, .factory = CancellingExecutor::Factory(plan)}), "cancelled steps");
}

TEST_F(BeamSearchTest, SchedulesOnTwoRanksDoNotChangeResults) {
  const std::vector<TestRequest> requests = Requests();
  const auto run = [&](const EngineSetup& setup, const RunHow& how) {
    return RunRequests(MakeConfig(Directory(), setup), tokenizer_, requests, how).outputs;
  };
  const auto base = run({.max_num_seqs = 6}, {.one_at_a_time = true});
  EXPECT_EQ(run({.ranks = 2}, {}), base);
  EXPECT_EQ(run({.max_num_batched_tokens = 33, .prefix_caching = false, .num_blocks = 26, .ranks = 2}, {}), base);
  const auto plan = [](int64_t attempt) { return attempt % 3 == 0 ? -1 : attempt % 11; };
  EXPECT_EQ(run({.ranks = 2}, {.in_process = true, .factory = CancellingExecutor::Factory(plan)}), base);
}

TEST_F(BeamSearchTest, NoPromptTokenIsComputedTwice) {
  const std::vector<int32_t> prompt = tokenizer_->Encode("How do I run a batch of prompts?", true);
  const std::unique_ptr<LLMEngine> engine = MakeEngine(MakeConfig(Directory(), {.prefix_caching = false}));
  Outputs(*engine, prompt, BeamParams(4, 1.0, 10, true));
  EXPECT_EQ(engine->stats().num_prompt_tokens, static_cast<int64_t>(prompt.size()));
  EXPECT_EQ(engine->stats().num_computed_tokens, static_cast<int64_t>(prompt.size()) + 4 * 9);
}

TEST_F(BeamSearchTest, BestOfReturnsTheMostProbableSamples) {
  const std::unique_ptr<LLMEngine> engine = MakeEngine(MakeConfig(Directory(), {}));
  const Prompt prompt = TextPrompt{"vllmcli chat"};
  SamplingParams params;
  params.max_tokens = 12;
  params.seed = 7;
  params.n = 6;
  params.logprobs = 0;
  params.output_kind = RequestOutputKind::kFinalOnly;
  std::vector<CompletionOutput> samples = Outputs(*engine, prompt, params);
  std::stable_sort(samples.begin(), samples.end(),
                   [](const auto& a, const auto& b) { return a.cumulative_logprob > b.cumulative_logprob; });
  params.n = 2;
  params.best_of = 6;
  params.logprobs.reset();
  const std::vector<CompletionOutput> best = Outputs(*engine, prompt, params);
  ASSERT_EQ(best.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(best[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(best[i].token_ids, samples[i].token_ids);
    EXPECT_EQ(best[i].score, samples[i].cumulative_logprob);
  }
}

TEST_F(BeamSearchTest, AnAbortReturnsOneFinalOutput) {
  const std::unique_ptr<LLMEngine> engine = MakeEngine(MakeConfig(Directory(), {}));
  engine->AddRequest("request", TextPrompt{"vllmcli chat"}, BeamParams(3, 1.0, 50, true));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(engine->Step().empty());
  engine->AbortRequest("request");
  const std::vector<RequestOutput>& outputs = engine->Step();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_TRUE(outputs[0].finished);
  EXPECT_EQ(outputs[0].outputs.size(), 3u);
  EXPECT_FALSE(engine->HasUnfinishedRequests());
}

}  // namespace
}  // namespace vllm
