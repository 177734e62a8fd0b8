// Tests speculation in EngineCore: right and wrong drafts do not change the tokens. The fake executor throws if the KV
// of a token is wrong.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>

#include "engine/core/engine_core.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/draft_proposers.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;
using testing_support::DraftKind;
using testing_support::RecordedOutputs;
using testing_support::VerifyAll;
using testing_support::WithDrafts;

struct Answer {
  std::vector<int32_t> token_ids;
  Logprobs logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_draft_tokens = 0;
};

std::map<RequestId, Answer> RunAll(EngineCore& engine_core) {
  std::map<RequestId, Answer> answers;
  EngineCoreOutputs outputs;
  for (int step = 0; engine_core.HasRequests() && step < 100000; ++step) {
    engine_core.Step(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Answer& answer = answers[outputs[i].request_id];
      const auto& ids = outputs[i].new_token_ids;
      answer.token_ids.insert(answer.token_ids.end(), ids.begin(), ids.end());
      answer.logprobs.Append(outputs[i].new_logprobs);
      answer.finish_reason = outputs[i].finish_reason;
      answer.num_draft_tokens = outputs[i].num_draft_tokens;
      answer.num_accepted_draft_tokens = outputs[i].num_accepted_draft_tokens;
    }
    EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  }
  return answers;
}

// Records what the fake model answers to the request.
void Record(const EngineCoreRequest& request, int64_t num_tokens, RecordedOutputs& recorded) {
  recorded.Add(request.prompt_token_ids, FakeGenerate(request, num_tokens, FakeConfig().model.vocab_size));
}

TEST(SpeculationEngineTest, RightDraftsGiveSeveralTokensPerStep) {
  VllmConfig config = FakeConfig();
  config.speculative = VerifyAll(4);
  auto recorded = std::make_shared<RecordedOutputs>();
  const EngineCoreRequestPtr request = FakeRequest(1, {1, 2, 3}, 21);
  Record(*request, 30, *recorded);
  int64_t num_steps = 0;
  FakeModel model;
  model.on_step = [&](int64_t, const SchedulerOutput&) { ++num_steps; };
  EngineCore engine_core(config, WithDrafts(FakeExecutorFactory(model), DraftKind::kRight, recorded, 1));
  engine_core.AddRequest(request);
  const Answer answer = RunAll(engine_core).at(1);
  EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 21, config.model.vocab_size));
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  // The prompt and the first token, then five tokens per step. The last call tells the executor of the end.
  EXPECT_EQ(num_steps, 1 + 4 + 1);
  EXPECT_EQ(answer.num_draft_tokens, 16);
  EXPECT_EQ(answer.num_accepted_draft_tokens, 16);
  const SpecDecodingStats all = engine_core.GetStats().spec_decoding;
  const SpecDecodingStats::Method& stats = all.methods[static_cast<size_t>(SpeculativeMethod::kSuffix)];
  EXPECT_EQ(stats.num_drafts, 4);
  EXPECT_EQ(stats.num_draft_tokens, 16);
  EXPECT_EQ(stats.num_accepted_tokens, 16);
  EXPECT_EQ(stats.MeanAcceptanceLength(), 5.0);
  EXPECT_EQ(stats.accepted[3], 4);
  EXPECT_EQ(stats.accepted[4], 0);
}

TEST(SpeculationEngineTest, DraftsNeverReachPastTheEnd) {
  // Room for one more token after each draft: max_tokens, max_model_len and the number of blocks.
  for (const int64_t max_tokens : {1, 2, 3, 7, 300}) {
    for (const int64_t num_blocks : {4, 100}) {
      VllmConfig config = FakeConfig();
      config.speculative = VerifyAll(12);
      config.cache.num_blocks_override = num_blocks;
      auto recorded = std::make_shared<RecordedOutputs>();
      const EngineCoreRequestPtr request = FakeRequest(1, {1, 2, 3}, max_tokens);
      Record(*request, 300, *recorded);
      EngineCore engine_core(config, WithDrafts(FakeExecutorFactory(), DraftKind::kOverlong, recorded, 1));
      engine_core.AddRequest(request);
      const int64_t limit = std::min(num_blocks * 16, config.model.max_model_len) - 3;
      EXPECT_EQ(RunAll(engine_core).at(1).token_ids,
                FakeGenerate(*request, std::min(max_tokens, limit), config.model.vocab_size));
    }
  }
}

TEST(SpeculationEngineTest, ErrorAfterADraftEndsTheRequestAtTheSameToken) {
  for (const int64_t k : {0, 1, 3, 8}) {
    VllmConfig config = FakeConfig();
    if (k > 0) config.speculative = VerifyAll(k);
    auto recorded = std::make_shared<RecordedOutputs>();
    const EngineCoreRequestPtr request = FakeRequest(1, {1, 2, 3}, 20);
    Record(*request, 20, *recorded);
    FakeModel model;
    model.fails = [](const EngineCoreRequest&, const std::vector<int32_t>& tokens) { return tokens.size() == 3 + 6; };
    EngineCore engine_core(config, WithDrafts(FakeExecutorFactory(model), DraftKind::kRight, recorded, 1));
    engine_core.AddRequest(request);
    const Answer answer = RunAll(engine_core).at(1);
    EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 6, config.model.vocab_size)) << k;
    EXPECT_EQ(answer.finish_reason, FinishReason::kError);
  }
}

TEST(SpeculationEngineTest, AcceptedTokensAreInThePrefixCache) {
  VllmConfig config = FakeConfig();
  config.speculative = VerifyAll(12);
  auto recorded = std::make_shared<RecordedOutputs>();
  const EngineCoreRequestPtr request = FakeRequest(1, {1, 2, 3}, 46);
  Record(*request, 46, *recorded);
  EngineCore engine_core(config, WithDrafts(FakeExecutorFactory(), DraftKind::kRight, recorded, 1));
  engine_core.AddRequest(request);
  std::vector<int32_t> tokens = RunAll(engine_core).at(1).token_ids;
  tokens.insert(tokens.begin(), {1, 2, 3});
  ASSERT_EQ(tokens.size(), 49u);
  engine_core.AddRequest(FakeRequest(2, tokens, 1));
  RunAll(engine_core);
  EXPECT_EQ(engine_core.GetStats().prefix_cache.hits, 48);
}

VllmConfig ConfigWithDraftModel(const VllmConfig& draft) {
  VllmConfig config = FakeConfig();
  config.speculative.method = SpeculativeMethod::kDraftModel;
  config.speculative.num_speculative_tokens = 3;
  config.speculative.adaptive = false;
  config.draft = std::make_shared<VllmConfig>(draft);
  return config;
}

TEST(SpeculationEngineTest, ADraftModelWritesTheDrafts) {
  // Both models are the same, so the drafts of greedy requests are right, and those of random ones hardly ever.
  VllmConfig draft = FakeConfig();
  draft.scheduler.max_num_seqs = 2;  // fewer than the requests
  EngineCore engine_core(ConfigWithDraftModel(draft), FakeExecutorFactory());
  std::vector<EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 6; ++id) {
    SamplingParams params;
    params.temperature = id <= 3 ? 0.0 : 1.0;
    requests.push_back(FakeRequest(id, std::vector<int32_t>(static_cast<size_t>(20 * id), 5), 41, params));
    engine_core.AddRequest(requests.back());
  }
  const auto answers = RunAll(engine_core);
  for (const EngineCoreRequestPtr& request : requests) {
    const Answer& answer = answers.at(request->request_id);
    EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 41, draft.model.vocab_size));
    if (request->request_id > 3) continue;
    EXPECT_EQ(answer.num_draft_tokens, 30);
    EXPECT_EQ(answer.num_accepted_draft_tokens, 30);
  }
}

TEST(SpeculationEngineTest, ADraftModelWithLessContextOrVocabularyDraftsWhatItCan) {
  VllmConfig draft = FakeConfig();
  draft.model.max_model_len = 40;
  EngineCore short_context(ConfigWithDraftModel(draft), FakeExecutorFactory());
  SamplingParams greedy;
  greedy.temperature = 0.0;
  const EngineCoreRequestPtr request = FakeRequest(1, {1, 2, 3}, 60, greedy);
  short_context.AddRequest(request);
  Answer answer = RunAll(short_context).at(1);
  EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 60, FakeConfig().model.vocab_size));
  EXPECT_GT(answer.num_accepted_draft_tokens, 20);
  EXPECT_LT(answer.num_accepted_draft_tokens, 37);

  draft = FakeConfig();
  draft.model.vocab_size = 3;
  EngineCore small_vocabulary(ConfigWithDraftModel(draft), FakeExecutorFactory());
  small_vocabulary.AddRequest(request);
  answer = RunAll(small_vocabulary).at(1);
  EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 60, FakeConfig().model.vocab_size));
  EXPECT_EQ(answer.num_draft_tokens, 0);

  draft.model.vocab_size = 100'000;  // its tokens are seldom in the vocabulary of the model
  EngineCore large_vocabulary(ConfigWithDraftModel(draft), FakeExecutorFactory());
  large_vocabulary.AddRequest(request);
  EXPECT_EQ(RunAll(large_vocabulary).at(1).token_ids, answer.token_ids);
}

TEST(SpeculationEngineTest, AProposerThatTakesMoreTimeThanItSavesPauses) {
  class SlowProposer final : public Proposer {
   public:
    explicit SlowProposer(std::shared_ptr<int64_t> num_calls) : num_calls_(std::move(num_calls)) {}
    void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
      ++*num_calls_;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (size_t i = 0; i < requests.size(); ++i) drafts.EndRequest();
    }

   private:
    std::shared_ptr<int64_t> num_calls_;
  };
  VllmConfig config = FakeConfig();
  config.speculative = VerifyAll(4);
  config.speculative.adaptive = true;
  auto num_calls = std::make_shared<int64_t>(0);
  EngineCore engine_core(config, testing_support::WithProposer(FakeExecutorFactory(), [&](const VllmConfig&) {
                           return std::make_unique<SlowProposer>(num_calls);
                         }));
  engine_core.AddRequest(FakeRequest(1, {1, 2, 3}, 200));
  RunAll(engine_core);
  // Eight calls, a pause of 32 steps, eight calls, a pause of 64, and so on.
  EXPECT_EQ(*num_calls, 8 * 3);
}

TEST(SpeculationEngineTest, ProposersLearnOfEveryRequestThatEnds) {
  class Counter final : public Proposer {
   public:
    explicit Counter(std::shared_ptr<std::map<RequestId, std::vector<int32_t>>> finished)
        : finished_(std::move(finished)) {}
    void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
      for (size_t i = 0; i < requests.size(); ++i) drafts.EndRequest();
    }
    void Finish(RequestId request_id, std::span<const int32_t> output_token_ids) override {
      EXPECT_TRUE(finished_->try_emplace(request_id, output_token_ids.begin(), output_token_ids.end()).second);
    }

   private:
    std::shared_ptr<std::map<RequestId, std::vector<int32_t>>> finished_;
  };
  VllmConfig config = FakeConfig();
  config.speculative = VerifyAll(4);
  FakeModel model;
  model.cancels = [](int64_t step, const SchedulerOutput&) { return step == 5 ? int64_t{1} : int64_t{-1}; };
  auto finished = std::make_shared<std::map<RequestId, std::vector<int32_t>>>();
  EngineCore engine_core(config, testing_support::WithProposer(FakeExecutorFactory(model), [&](const VllmConfig&) {
                           return std::make_unique<Counter>(finished);
                         }));
  std::vector<EngineCoreRequestPtr> requests;
  for (RequestId id = 1; id <= 3; ++id) {
    requests.push_back(FakeRequest(id, {1, 2, 3}, 20));
    engine_core.AddRequest(requests.back());
  }
  EngineCoreOutputs outputs;
  for (int step = 1; step <= 4; ++step) engine_core.Step(outputs);
  const RequestId aborted = 2;
  engine_core.AbortRequests(std::span(&aborted, 1));  // the workers learn of it in a step that is cancelled
  RunAll(engine_core);
  ASSERT_EQ(finished->size(), 3u);
  EXPECT_EQ(finished->at(1), FakeGenerate(*requests[0], 20, config.model.vocab_size));
  EXPECT_EQ(finished->at(2), FakeGenerate(*requests[1], 4, config.model.vocab_size));
  EXPECT_EQ(finished->at(3), FakeGenerate(*requests[2], 20, config.model.vocab_size));
}

// One round of the test below.
struct Round {
  int64_t num_preemptions = 0;
  int64_t num_hits = 0;
  SpecDecodingStats stats;
};

Round RunRound(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  VllmConfig config = FakeConfig();
  config.model.vocab_size = pick(0, 1) == 0 ? 259 : 3;  // with 3 tokens, random drafts are often right
  config.scheduler.max_num_batched_tokens = pick(1, 80);
  config.scheduler.max_num_seqs = pick(1, 8);
  config.scheduler.policy = pick(0, 2) == 0 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  config.scheduler.long_prefill_token_threshold = pick(0, 2) == 0 ? pick(1, 20) : 0;
  config.cache.enable_prefix_caching = pick(0, 3) > 0;
  config.speculative = VerifyAll(1 + seed % 12);
  config.speculative.adaptive = pick(0, 3) == 0;
  FakeModel model;
  model.group_windows.assign(static_cast<size_t>(pick(0, 2)), 0);
  if (model.group_windows.empty() || pick(0, 1) == 0) model.group_windows.push_back(pick(2, 90));
  if (pick(0, 2) == 0) {
    model.cancels = [](int64_t step, const SchedulerOutput& output) {
      return step % 3 == 0 ? step % (static_cast<int64_t>(output.num_scheduled_tokens.size()) + 1) : int64_t{-1};
    };
  }
  const auto num_groups = static_cast<int64_t>(model.group_windows.size());
  config.cache.num_blocks_override = num_groups * pick(13, 40);
  auto recorded = std::make_shared<RecordedOutputs>();
  const auto kind = static_cast<DraftKind>(pick(0, 3));
  EngineCore engine_core(config, WithDrafts(FakeExecutorFactory(model), kind, recorded, seed));

  std::map<RequestId, EngineCoreRequestPtr> requests;
  std::vector<int32_t> shared;
  for (int64_t n = pick(0, 60); n > 0; --n) shared.push_back(static_cast<int32_t>(pick(0, 2)));
  for (RequestId id = 1; id <= 12; ++id) {
    std::vector<int32_t> prompt = pick(0, 1) == 0 ? shared : std::vector<int32_t>();
    for (int64_t n = pick(1, 60); n > 0; --n) prompt.push_back(static_cast<int32_t>(pick(0, 2)));
    SamplingParams params;
    params.temperature = pick(0, 1) == 0 ? 0.0 : 1.0;
    params.ignore_eos = true;
    if (pick(0, 2) == 0) params.logprobs = 1;
    auto request = std::make_shared<EngineCoreRequest>(*FakeRequest(id, std::move(prompt), pick(1, 60), params));
    request->priority = pick(0, 3);
    request->interactive = pick(0, 5) == 0;
    if (pick(0, 1) == 0) {
      const auto num_prior = static_cast<size_t>(pick(0, 5));
      request->prior_output_token_ids =
          FakeGenerate(*request, static_cast<int64_t>(num_prior), config.model.vocab_size);
    }
    recorded->Add(request->prompt_token_ids, FakeGenerate(*request, 70, config.model.vocab_size));
    requests[id] = request;
    engine_core.AddRequest(request);
  }
  const auto answers = RunAll(engine_core);
  for (const auto& [id, request] : requests) {
    const auto num_prior = static_cast<int64_t>(request->prior_output_token_ids.size());
    const int64_t max_tokens = std::max(*request->sampling_params.max_tokens, num_prior + 1);
    std::vector<int32_t> expected = FakeGenerate(*request, max_tokens, config.model.vocab_size);
    expected.erase(expected.begin(), expected.begin() + num_prior);
    EXPECT_EQ(answers.at(id).token_ids, expected) << "round " << seed << ", request " << id;
    const size_t num_logprobs = request->sampling_params.logprobs ? expected.size() : 0;
    EXPECT_EQ(answers.at(id).logprobs.num_positions(), num_logprobs);
    for (size_t i = 0; i < num_logprobs; ++i) EXPECT_EQ(answers.at(id).logprobs.token_ids[2 * i], expected[i]);
  }
  const SchedulerStats stats = engine_core.GetStats();
  return {stats.num_preemptions, stats.prefix_cache.hits, stats.spec_decoding};
}

TEST(SpeculationEngineTest, DraftsDoNotChangeTokens) {
  Round sum;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Round round = RunRound(seed);
    sum.num_preemptions += round.num_preemptions;
    sum.num_hits += round.num_hits;
    sum.stats.Add(round.stats);
    if (HasFailure()) break;
  }
  EXPECT_GT(sum.num_preemptions, 50);
  EXPECT_GT(sum.num_hits, 1000);
  EXPECT_GT(sum.stats.Total().num_accepted_tokens, 1000);
  EXPECT_GT(sum.stats.Total().num_draft_tokens, 2 * sum.stats.Total().num_accepted_tokens);
}

}  // namespace
}  // namespace vllm
