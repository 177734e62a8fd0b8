// Tests EngineCore with recurrent state, which the fake executor checks in every step: it throws if a state does not
// belong to exactly the tokens that it should.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/config/errors.h"
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

std::map<RequestId, std::vector<int32_t>> RunAll(EngineCore& engine_core) {
  std::map<RequestId, std::vector<int32_t>> answers;
  EngineCoreOutputs outputs;
  for (int step = 0; engine_core.HasRequests() && step < 100000; ++step) {
    engine_core.Step(outputs);
    EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].error, "");
      auto& answer = answers[outputs[i].request_id];
      answer.insert(answer.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
    }
  }
  return answers;
}

// Runs one request alone and returns its prefix-cache hit in tokens.
int64_t HitOf(EngineCore& engine_core, const EngineCoreRequestPtr& request) {
  const int64_t before = engine_core.GetStats().prefix_cache.hits;
  engine_core.AddRequest(request);
  RunAll(engine_core);
  return engine_core.GetStats().prefix_cache.hits - before;
}

std::vector<int32_t> Tokens(int64_t count, int32_t first) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>((first + 7 * i) % 259));
  return tokens;
}

class RecurrentStateEngineTest : public ::testing::Test {
 protected:
  RecurrentStateEngineTest() {
    config_.cache.num_blocks_override = 200;
    config_.model.max_model_len = 2048;
    model_.num_state_blocks = 3;
  }
  VllmConfig config_ = FakeConfig();
  FakeModel model_;
};

TEST_F(RecurrentStateEngineTest, SchedulesDoNotChangeTokens) {
  int64_t num_preemptions = 0, num_hits = 0, num_accepted = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    VllmConfig config = FakeConfig();
    config.model.vocab_size = pick(0, 1) == 0 ? 259 : 3;
    config.scheduler.max_num_batched_tokens = pick(1, 80);
    config.scheduler.max_num_seqs = pick(1, 8);
    config.scheduler.policy = pick(0, 2) == 0 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    config.scheduler.scheduler_reserve_full_isl = pick(0, 1) == 1;
    config.cache.enable_prefix_caching = pick(0, 3) > 0;
    FakeModel model;
    model.num_state_blocks = pick(1, 6);
    model.group_windows.assign(static_cast<size_t>(pick(0, 2)), 0);
    if (model.group_windows.empty()) model.group_windows.push_back(pick(0, 1) == 0 ? 1 : pick(2, 90));
    if (pick(0, 2) == 0) {
      model.cancels = [](int64_t step, const SchedulerOutput& output) {
        return step % 40 == 0 ? step % (static_cast<int64_t>(output.num_scheduled_tokens.size()) + 1) : int64_t{-1};
      };
    }
    const auto num_groups = static_cast<int64_t>(model.group_windows.size());
    config.cache.num_blocks_override = model.num_state_blocks + num_groups * pick(13, 40);
    auto recorded = std::make_shared<RecordedOutputs>();
    if (pick(0, 1) == 0) config.speculative = VerifyAll(1 + seed % 12);
    EngineCore engine_core(config,
                           WithDrafts(FakeExecutorFactory(model), static_cast<DraftKind>(pick(0, 3)), recorded, seed));

    std::map<RequestId, EngineCoreRequestPtr> requests;
    std::vector<int32_t> shared;
    for (int64_t n = pick(0, 60); n > 0; --n) shared.push_back(static_cast<int32_t>(pick(0, 2)));
    for (RequestId id = 1; id <= 14; ++id) {
      std::vector<int32_t> prompt = pick(0, 2) > 0 ? shared : std::vector<int32_t>();
      for (int64_t n = pick(1, 60); n > 0; --n) prompt.push_back(static_cast<int32_t>(pick(0, 2)));
      auto request = std::make_shared<EngineCoreRequest>(*FakeRequest(id, std::move(prompt), pick(1, 60)));
      request->priority = pick(0, 3);
      request->interactive = pick(0, 5) == 0;
      recorded->Add(request->prompt_token_ids, FakeGenerate(*request, 70, config.model.vocab_size));
      requests[id] = request;
      engine_core.AddRequest(request);
    }
    const auto answers = RunAll(engine_core);
    for (const auto& [id, request] : requests) {
      EXPECT_EQ(answers.at(id), FakeGenerate(*request, *request->sampling_params.max_tokens, config.model.vocab_size))
          << "round " << seed << ", request " << id;
    }
    const SchedulerStats stats = engine_core.GetStats();
    num_preemptions += stats.num_preemptions;
    num_hits += stats.prefix_cache.hits;
    num_accepted += stats.spec_decoding.Total().num_accepted_tokens;
    EXPECT_TRUE(engine_core.ResetPrefixCache());
    if (HasFailure()) break;
  }
  EXPECT_GT(num_preemptions, 50);
  EXPECT_GT(num_hits, 1000);
  EXPECT_GT(num_accepted, 1000);
}

TEST_F(RecurrentStateEngineTest, TheSamePromptHitsItsLastFullBlock) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  EXPECT_EQ(HitOf(engine_core, FakeRequest(1, Tokens(100, 1), 4)), 0);
  EXPECT_EQ(HitOf(engine_core, FakeRequest(2, Tokens(100, 1), 4)), 96);
}

TEST_F(RecurrentStateEngineTest, ALaterTurnHitsTheLastFullBlockOfTheAnswer) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  const auto first = FakeRequest(1, Tokens(40, 1), 60);
  EXPECT_EQ(HitOf(engine_core, first), 0);
  std::vector<int32_t> second = first->prompt_token_ids;
  for (const int32_t token : FakeGenerate(*first, 60, 259)) second.push_back(token);
  for (const int32_t token : Tokens(20, 5)) second.push_back(token);
  // The last token of the answer was sampled but not computed.
  EXPECT_EQ(HitOf(engine_core, FakeRequest(2, second, 4)), 96);
}

TEST_F(RecurrentStateEngineTest, AnAnswerKeepsOneCheckpoint) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  HitOf(engine_core, FakeRequest(1, Tokens(40, 1), 150));
  // 189 computed tokens are 11 full blocks. Their states after 32 tokens (of the prompt) and 176 tokens are cached.
  EXPECT_EQ(engine_core.scheduler().kv_cache().pool().num_cached_blocks(), 11 + 2 * model_.num_state_blocks);
}

TEST_F(RecurrentStateEngineTest, TheThirdPromptWithASharedPrefixHitsWhereTheSecondDiffered) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  const auto prompt = [](int32_t id) {
    std::vector<int32_t> tokens = Tokens(80, 1);
    for (const int32_t token : Tokens(40, 100 + id)) tokens.push_back(token);
    return tokens;
  };
  EXPECT_EQ(HitOf(engine_core, FakeRequest(1, prompt(1), 4)), 0);
  EXPECT_EQ(HitOf(engine_core, FakeRequest(2, prompt(2), 4)), 0);
  EXPECT_EQ(HitOf(engine_core, FakeRequest(3, prompt(3), 4)), 80);
}

TEST_F(RecurrentStateEngineTest, PromptsThatArriveTogetherComputeTheirSharedPrefixOnce) {
  config_.scheduler.max_num_batched_tokens = 64;
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  int64_t num_tokens = 0;
  for (RequestId id = 1; id <= 6; ++id) {
    std::vector<int32_t> prompt = Tokens(160, 1);
    for (const int32_t token : Tokens(20, static_cast<int32_t>(100 + id))) prompt.push_back(token);
    num_tokens += 20 + 8 - 1;
    engine_core.AddRequest(FakeRequest(id, prompt, 8));
  }
  RunAll(engine_core);
  EXPECT_EQ(engine_core.GetStats().num_computed_tokens, 160 + num_tokens);
}

TEST_F(RecurrentStateEngineTest, LongPromptsHaveCheckpointsOnTheWay) {
  config_.cache.num_blocks_override = 400;
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  std::vector<int32_t> prompt = Tokens(1500, 1);
  EXPECT_EQ(HitOf(engine_core, FakeRequest(1, prompt, 4)), 0);
  prompt.resize(1300);
  prompt.back() = 258;
  EXPECT_EQ(HitOf(engine_core, FakeRequest(2, prompt, 4)), 1024);
}

TEST_F(RecurrentStateEngineTest, ARequestTakesOverACachedStateIfThereIsNoRoomForACopy) {
  config_.cache.num_blocks_override = 16;
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  HitOf(engine_core, FakeRequest(1, Tokens(50, 1), 2));
  // Another request takes 7 blocks. Of the other 9, the hit is 3, so there is no room for a block of KV and two states.
  const auto other = FakeRequest(2, Tokens(50, 99), 9);
  engine_core.AddRequest(other);
  EXPECT_EQ(HitOf(engine_core, FakeRequest(3, Tokens(50, 1), 9)), 48);
}

TEST_F(RecurrentStateEngineTest, WithoutAttentionMemoryDoesNotGrowWithTheContext) {
  config_.model.max_model_len = 1 << 20;
  config_.scheduler.max_num_batched_tokens = 64;
  config_.cache.num_blocks_override = 12;
  config_.cache.enable_prefix_caching = false;
  model_.group_windows = {1};
  model_.check_kv = false;
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  EXPECT_EQ(engine_core.ready().max_model_len, 1 << 20);
  engine_core.AddRequest(FakeRequest(1, Tokens(3000, 1), 20));
  EXPECT_EQ(RunAll(engine_core).at(1).size(), 20u);
}

TEST_F(RecurrentStateEngineTest, APoolWithoutRoomForAStateIsAnError) {
  config_.cache.num_blocks_override = 3;
  EXPECT_THROW(EngineCore(config_, FakeExecutorFactory(model_)), ConfigError);
  config_.cache.num_blocks_override.reset();
  model_.memory_bytes = 4 * model_.block_bytes;
  EXPECT_THROW(EngineCore(config_, FakeExecutorFactory(model_)), ResourceError);
  model_.memory_bytes = 5 * model_.block_bytes;
  EXPECT_EQ(EngineCore(config_, FakeExecutorFactory(model_)).ready().num_blocks, 4);
}

TEST_F(RecurrentStateEngineTest, BeamSearchIsRejected) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  auto request = std::make_shared<EngineCoreRequest>(*FakeRequest(1, Tokens(10, 1), 4));
  request->sampling_params.use_beam_search = true;
  request->sampling_params.beam_width = 2;
  engine_core.AddRequest(request);
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  ASSERT_GE(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].error, "beam search does not work with models that have recurrent state");
}

}  // namespace
}  // namespace vllm
