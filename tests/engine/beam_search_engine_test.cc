// Tests beam search in EngineCore with the fake executor, which throws if the KV of a token is wrong: with any
// schedule, the sequences and their scores are those of a beam search without an engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "engine/core/engine_core.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/reference_beam_search.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeMix;
using testing::FakeModel;
using testing::FakeRequest;
using testing_support::ReferenceBeamSearch;
using testing_support::ReferenceSequence;

constexpr int32_t kEos = 0;

// The logprobs of a random model: different after every sequence, or of few values so that many sums are equal.
struct RandomModel {
  int32_t vocab_size = 0;
  bool has_ties = false;

  float operator()(const std::vector<int32_t>& tokens, int32_t token_id) const {
    uint64_t hash = 0;
    for (const int32_t id : tokens) hash = FakeMix(hash, static_cast<uint64_t>(id));
    const auto logit = [&](int32_t id) {
      return static_cast<float>(FakeMix(hash, static_cast<uint64_t>(id) + 1) % 1000) / 250.0f;
    };
    if (has_ties) return -0.25f * static_cast<float>(1 + static_cast<int>(logit(token_id)));
    double sum = 0;
    for (int32_t id = 0; id < vocab_size; ++id) sum += std::exp(static_cast<double>(logit(id)));
    return logit(token_id) - static_cast<float>(std::log(sum));
  }
};

struct BeamSpec {
  std::vector<int32_t> prompt;
  int64_t width = 1;
  double length_penalty = 1.0;
  int64_t max_tokens = 1;
  bool ignore_eos = false;
};

SamplingParams BeamParams(const BeamSpec& spec) {
  SamplingParams params;
  params.use_beam_search = true;
  params.beam_width = spec.width;
  params.length_penalty = spec.length_penalty;
  params.temperature = 0.0;
  params.logprobs = NumBeamCandidates(spec.width);
  params.eos_token_id = kEos;
  params.ignore_eos = spec.ignore_eos;
  return params;
}

EngineCoreRequestPtr BeamRequest(RequestId id, const BeamSpec& spec) {
  return FakeRequest(id, spec.prompt, spec.max_tokens, BeamParams(spec));
}

std::vector<ReferenceSequence> Reference(const RandomModel& model, const BeamSpec& spec) {
  const auto top = [&](const std::vector<int32_t>& generated, size_t count) {
    std::vector<int32_t> tokens = spec.prompt;
    tokens.insert(tokens.end(), generated.begin(), generated.end());
    std::vector<std::pair<int32_t, float>> all;
    for (int32_t id = 0; id < model.vocab_size; ++id) all.emplace_back(id, model(tokens, id));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    all.resize(std::min(all.size(), count));
    return all;
  };
  return ReferenceBeamSearch(top, static_cast<size_t>(spec.width), spec.length_penalty, spec.max_tokens,
                             spec.ignore_eos ? std::set<int32_t>() : std::set<int32_t>{kEos});
}

class BeamSearchEngineTest : public ::testing::Test {
 protected:
  BeamSearchEngineTest() {
    config_ = FakeConfig();
    config_.model.vocab_size = 7;
    config_.cache.num_blocks_override = 400;
    config_.scheduler.max_num_seqs = 64;
    model_.logprob = [this](const std::vector<int32_t>& tokens, int32_t id) { return Random()(tokens, id); };
  }

  RandomModel Random() const { return {static_cast<int32_t>(config_.model.vocab_size), has_ties_}; }

  // Runs the requests that `requests_` has, and checks the scheduler after each step.
  void Run() {
    answers_.clear();
    EngineCore engine_core(config_, FakeExecutorFactory(model_));
    for (const EngineCoreRequestPtr& request : requests_) engine_core.AddRequest(request);
    EngineCoreOutputs outputs;
    for (int step = 0; engine_core.HasRequests() && step < 100000; ++step) {
      engine_core.Step(outputs);
      for (size_t i = 0; i < outputs.size(); ++i) Collect(outputs[i]);
      ASSERT_EQ(engine_core.scheduler().CheckIntegrity(), "");
    }
    ASSERT_FALSE(engine_core.HasUnfinishedRequests());
    stats_ = engine_core.GetStats();
    EXPECT_EQ(stats_.kv_cache_usage, 0.0);
  }

  void Collect(const EngineCoreOutput& output) {
    Answer& answer = answers_[output.request_id];
    ASSERT_EQ(answer.reason, FinishReason::kNone);
    const auto& ids = output.new_token_ids;
    answer.token_ids.insert(answer.token_ids.end(), ids.begin(), ids.end());
    answer.reason = output.finish_reason;
    answer.cumulative_logprob = output.cumulative_logprob;
    answer.score = output.beam_score;
    answer.error = output.error;
  }

  // Checks that the answers to a beam request are those of the reference, bit for bit.
  void ExpectReference(RequestId first_id, const BeamSpec& spec) const {
    const std::vector<ReferenceSequence> expected = Reference(Random(), spec);
    for (size_t rank = 0; rank < static_cast<size_t>(spec.width); ++rank) {
      const std::string where = "request " + std::to_string(first_id) + " rank " + std::to_string(rank);
      const auto found = answers_.find(first_id + rank);
      ASSERT_NE(found, answers_.end()) << where;
      const Answer& answer = found->second;
      if (rank >= expected.size()) {
        EXPECT_EQ(answer.reason, FinishReason::kLength) << where;
        EXPECT_TRUE(answer.token_ids.empty()) << where;
        EXPECT_FALSE(answer.score) << where;
        continue;
      }
      EXPECT_EQ(answer.token_ids, expected[rank].token_ids) << where;
      EXPECT_EQ(answer.cumulative_logprob, expected[rank].cumulative_logprob) << where;
      EXPECT_EQ(answer.score, expected[rank].score) << where;
      EXPECT_EQ(answer.reason, expected[rank].has_eos ? FinishReason::kStop : FinishReason::kLength) << where;
    }
  }

  void ExpectAll(const std::vector<BeamSpec>& specs) {
    requests_.clear();
    RequestId id = 1;
    for (const BeamSpec& spec : specs) {
      requests_.push_back(BeamRequest(id, spec));
      id += static_cast<RequestId>(spec.width);
    }
    Run();
    id = 1;
    for (const BeamSpec& spec : specs) {
      ExpectReference(id, spec);
      id += static_cast<RequestId>(spec.width);
    }
  }

  struct Answer {
    std::vector<int32_t> token_ids;
    FinishReason reason = FinishReason::kNone;
    double cumulative_logprob = 0.0;
    std::optional<double> score;
    std::string error;
  };

  VllmConfig config_;
  FakeModel model_;
  bool has_ties_ = false;
  std::vector<EngineCoreRequestPtr> requests_;
  std::map<RequestId, Answer> answers_;
  SchedulerStats stats_;
};

std::vector<int32_t> Prompt(int32_t seed, int64_t length) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(1 + random() % 6));
  return ids;
}

std::vector<BeamSpec> MixedSpecs() {
  std::vector<BeamSpec> specs;
  for (int i = 0; i < 12; ++i) {
    specs.push_back({.prompt = Prompt(i % 5, 3 + 13 * (i % 4)),
                     .width = 1 + i % 5,
                     .length_penalty = i % 3 == 0 ? 0.0 : 1.5,
                     .max_tokens = 1 + 9 * (i % 5),
                     .ignore_eos = i % 2 == 0});
  }
  return specs;
}

TEST_F(BeamSearchEngineTest, EqualsABeamSearchWithoutAnEngine) { ExpectAll(MixedSpecs()); }

TEST_F(BeamSearchEngineTest, TiesGoToTheLowerBeamThenTheLowerToken) {
  has_ties_ = true;
  ExpectAll(MixedSpecs());
}

TEST_F(BeamSearchEngineTest, TokenBudgetsAndChunksDoNotChangeResults) {
  for (const int64_t budget : {1, 3, 7, 40}) {
    config_.scheduler.max_num_batched_tokens = budget;
    ExpectAll(MixedSpecs());
  }
  config_.scheduler.long_prefill_token_threshold = 5;
  ExpectAll(MixedSpecs());
}

TEST_F(BeamSearchEngineTest, PrefixCachingDoesNotChangeResults) {
  for (const bool caching : {true, false}) {
    config_.cache.enable_prefix_caching = caching;
    ExpectAll(MixedSpecs());
  }
}

TEST_F(BeamSearchEngineTest, PreemptionDoesNotChangeResults) {
  // The largest group needs 2 blocks for the prompt and 5 x 3 for the beams.
  for (const int64_t num_blocks : {17, 20, 25, 40}) {
    for (const bool reserve : {true, false}) {
      for (const bool caching : {true, false}) {
        config_.cache.num_blocks_override = num_blocks;
        config_.cache.enable_prefix_caching = caching;
        config_.scheduler.scheduler_reserve_full_isl = reserve;
        ExpectAll(MixedSpecs());
        EXPECT_GT(stats_.num_preemptions, 0) << num_blocks;
      }
    }
  }
}

TEST_F(BeamSearchEngineTest, DiskCacheDoesNotChangeResults) {
  const TempDirectory temp;
  config_.kv_disk_cache = {.directory = temp.path() + "/kv",
                           .max_bytes = int64_t{16} << 20,
                           .model_identity = "model",
                           .label = "",
                           .loads_only_if_faster = false};
  // Other requests leave the prompts of the groups on disk.
  requests_.clear();
  for (const BeamSpec& spec : MixedSpecs()) {
    requests_.push_back(FakeRequest(static_cast<RequestId>(1000 + requests_.size()), spec.prompt, 2));
  }
  Run();
  for (const int64_t num_blocks : {20, 400}) {
    config_.cache.num_blocks_override = num_blocks;
    ExpectAll(MixedSpecs());
    EXPECT_GT(stats_.kv_transfer.num_loaded_tokens, 0) << num_blocks;
  }
  // The group is aborted while the KV of its prompt is being loaded.
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  EngineCoreOutputs outputs;
  engine_core.AddRequest(BeamRequest(1, {.prompt = MixedSpecs()[3].prompt, .width = 3, .max_tokens = 5}));
  engine_core.Step(outputs);
  engine_core.AbortRequests(std::vector<RequestId>{1});
  EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  EXPECT_FALSE(engine_core.HasUnfinishedRequests());
}

TEST_F(BeamSearchEngineTest, PriorityPolicyDoesNotChangeResults) {
  config_.scheduler.policy = SchedulingPolicy::kPriority;
  config_.cache.num_blocks_override = 20;
  config_.scheduler.max_num_seqs = 7;
  ExpectAll(MixedSpecs());
}

TEST_F(BeamSearchEngineTest, CancelledStepsDoNotChangeResults) {
  std::mt19937 random(1);
  model_.cancels = [&](int64_t, const SchedulerOutput& step) -> int64_t {
    if (random() % 3 != 0 || step.num_scheduled_tokens.empty()) return -1;
    return static_cast<int64_t>(random() % step.num_scheduled_tokens.size());
  };
  for (const int64_t num_blocks : {20, 400}) {
    config_.cache.num_blocks_override = num_blocks;
    ExpectAll(MixedSpecs());
  }
}

TEST_F(BeamSearchEngineTest, SlidingWindowsDoNotChangeResults) {
  for (const std::vector<int64_t>& windows : {std::vector<int64_t>{0, 20}, {20}, {17, 40}}) {
    model_.group_windows = windows;
    for (const int64_t num_blocks : {70, 400}) {
      config_.cache.num_blocks_override = num_blocks;
      config_.scheduler.max_num_batched_tokens = 16;
      ExpectAll(MixedSpecs());
    }
  }
}

TEST_F(BeamSearchEngineTest, PlainRequestsRunInTheSameSteps) {
  config_.cache.num_blocks_override = 20;
  const BeamSpec spec = {.prompt = Prompt(1, 30), .width = 4, .max_tokens = 20, .ignore_eos = true};
  requests_ = {FakeRequest(1, Prompt(2, 20), 30), BeamRequest(2, spec), FakeRequest(6, Prompt(1, 40), 30)};
  for (auto index : {size_t{0}, size_t{2}}) {
    auto plain = std::make_shared<EngineCoreRequest>(*requests_[index]);
    plain->sampling_params.ignore_eos = true;
    requests_[index] = plain;
  }
  Run();
  ExpectReference(2, spec);
  EXPECT_EQ(answers_[1].token_ids, FakeGenerate(*requests_[0], 30, config_.model.vocab_size));
  EXPECT_EQ(answers_[6].token_ids, FakeGenerate(*requests_[2], 30, config_.model.vocab_size));
}

TEST_F(BeamSearchEngineTest, WideBeamsFindWhatAnExhaustiveSearchFinds) {
  // Of 4 tokens, one ends a sequence: 13 sequences end within 3 tokens, and 27 do not.
  config_.model.vocab_size = 4;
  for (const int64_t width : {40, 50, 64}) {
    for (const double penalty : {0.0, 1.0}) {
      const BeamSpec spec = {.prompt = {1, 2, 3}, .width = width, .length_penalty = penalty, .max_tokens = 3};
      std::vector<ReferenceSequence> all = {{}};
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].has_eos || all[i].token_ids.size() == 3) continue;
        std::vector<int32_t> tokens = spec.prompt;
        tokens.insert(tokens.end(), all[i].token_ids.begin(), all[i].token_ids.end());
        for (int32_t id = 0; id < 4; ++id) {
          ReferenceSequence next = all[i];
          next.token_ids.push_back(id);
          next.cumulative_logprob += static_cast<double>(Random()(tokens, id));
          next.score = next.cumulative_logprob / std::pow(static_cast<double>(next.token_ids.size()), penalty);
          next.has_eos = id == kEos;
          all.push_back(next);
        }
      }
      std::erase_if(all, [](const ReferenceSequence& s) { return !s.has_eos && s.token_ids.size() < 3; });
      std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
      ASSERT_EQ(all.size(), 40u);
      requests_ = {BeamRequest(1, spec)};
      Run();
      for (size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(answers_[1 + rank].token_ids, all[rank].token_ids) << rank;
        EXPECT_EQ(answers_[1 + rank].score, all[rank].score) << rank;
      }
    }
  }
}

TEST_F(BeamSearchEngineTest, WidthOneIsGreedy) {
  const BeamSpec spec = {.prompt = Prompt(3, 20), .width = 1, .max_tokens = 25, .ignore_eos = true};
  requests_ = {BeamRequest(1, spec)};
  Run();
  std::vector<int32_t> tokens = spec.prompt;
  for (int64_t i = 0; i < spec.max_tokens; ++i) {
    int32_t best = 0;
    for (int32_t id = 1; id < 7; ++id) {
      if (Random()(tokens, id) > Random()(tokens, best)) best = id;
    }
    tokens.push_back(best);
  }
  tokens.erase(tokens.begin(), tokens.begin() + 20);
  EXPECT_EQ(answers_[1].token_ids, tokens);
}

TEST_F(BeamSearchEngineTest, ComputesThePromptOnceAndOneTokenPerBeam) {
  config_.cache.enable_prefix_caching = false;
  const BeamSpec spec = {.prompt = Prompt(3, 50), .width = 5, .max_tokens = 10, .ignore_eos = true};
  requests_ = {BeamRequest(1, spec)};
  Run();
  ExpectReference(1, spec);
  EXPECT_EQ(stats_.num_prompt_tokens, 50);
  EXPECT_EQ(stats_.num_computed_tokens, 50 + 5 * 9);
}

TEST_F(BeamSearchEngineTest, SharesTheBlocksOfThePrompt) {
  // 100 tokens of prompt in 6 full blocks; each beam needs one or two more.
  config_.cache.num_blocks_override = 6 + 4 * 2;
  const BeamSpec spec = {.prompt = Prompt(3, 100), .width = 4, .max_tokens = 20, .ignore_eos = true};
  requests_ = {BeamRequest(1, spec)};
  Run();
  ExpectReference(1, spec);
  EXPECT_EQ(stats_.num_preemptions, 0);
}

TEST_F(BeamSearchEngineTest, AGroupThatCannotGrowEndsByItsLength) {
  // The beams have one block each after the prompt's two, and one token more than fits into it.
  config_.cache.num_blocks_override = 2 + 4;
  BeamSpec spec = {.prompt = Prompt(3, 32), .width = 4, .max_tokens = 100, .ignore_eos = true};
  requests_ = {BeamRequest(1, spec)};
  Run();
  spec.max_tokens = 17;
  ExpectReference(1, spec);
}

TEST_F(BeamSearchEngineTest, AGroupThatCanNeverFitIsRejected) {
  config_.cache.num_blocks_override = 2 + 3;
  requests_ = {BeamRequest(1, {.prompt = Prompt(3, 32), .width = 4, .max_tokens = 3})};
  Run();
  for (RequestId id = 1; id <= 4; ++id) {
    EXPECT_EQ(answers_[id].error,
              "prompt is 32 tokens, too many for beam_width 4: the KV cache has 5 blocks of 16 tokens and must also "
              "hold one generated token of each beam");
  }
  config_.scheduler.max_num_seqs = 3;
  Run();
  EXPECT_EQ(answers_[1].error, "beam_width 4 exceeds --max-num-seqs 3");
}

TEST_F(BeamSearchEngineTest, AFailureEndsAllBeams) {
  const BeamSpec spec = {.prompt = Prompt(3, 10), .width = 3, .max_tokens = 10, .ignore_eos = true};
  model_.fails = [](const EngineCoreRequest&, const std::vector<int32_t>& tokens) {
    return tokens.size() == 14 && tokens.back() % 2 == 0;
  };
  requests_ = {BeamRequest(1, spec), FakeRequest(4, Prompt(3, 10), 2)};
  Run();
  for (RequestId id = 1; id <= 3; ++id) {
    EXPECT_EQ(answers_[id].reason, FinishReason::kError);
    EXPECT_EQ(answers_[id].error, "logits are not numbers (nan)");
  }
  EXPECT_NE(answers_[4].reason, FinishReason::kError);
}

TEST_F(BeamSearchEngineTest, AnAbortOfAnyBeamEndsTheGroup) {
  for (const RequestId id : {RequestId{1}, RequestId{2}}) {
    EngineCore engine_core(config_, FakeExecutorFactory(model_));
    engine_core.AddRequest(BeamRequest(1, {.prompt = Prompt(3, 10), .width = 3, .max_tokens = 50, .ignore_eos = true}));
    EngineCoreOutputs outputs;
    for (int i = 0; i < 5; ++i) engine_core.Step(outputs);
    engine_core.AbortRequests({&id, 1});
    EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
    EXPECT_FALSE(engine_core.HasUnfinishedRequests());
    engine_core.Step(outputs);
    EXPECT_TRUE(outputs.empty());
    EXPECT_EQ(engine_core.GetStats().kv_cache_usage, 0.0);
  }
}

TEST_F(BeamSearchEngineTest, RandomAbortsPausesAndInteractiveRequestsDoNotChangeOtherResults) {
  std::mt19937 random(5);
  model_.cancels = [&](int64_t, const SchedulerOutput& step) -> int64_t {
    if (random() % 8 != 0 || step.num_scheduled_tokens.empty()) return -1;
    return static_cast<int64_t>(random() % step.num_scheduled_tokens.size());
  };
  for (int round = 0; round < 60; ++round) {
    has_ties_ = round % 3 == 0;
    config_.cache.num_blocks_override = 18 + static_cast<int64_t>(random() % 30);
    config_.cache.enable_prefix_caching = random() % 2 == 0;
    config_.scheduler.max_num_seqs = 6 + static_cast<int64_t>(random() % 10);
    config_.scheduler.max_num_batched_tokens = 1 + static_cast<int64_t>(random() % 64);
    config_.scheduler.policy = random() % 2 == 0 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    config_.scheduler.scheduler_reserve_full_isl = random() % 2 == 0;
    answers_.clear();
    EngineCore engine_core(config_, FakeExecutorFactory(model_));
    std::map<RequestId, BeamSpec> specs;
    RequestId next_id = 1;
    EngineCoreOutputs outputs;
    for (int step = 0; step < 20000 && (step < 100 || engine_core.HasUnfinishedRequests()); ++step) {
      if (step < 100 && random() % 8 == 0) {
        const BeamSpec spec = {.prompt = Prompt(static_cast<int32_t>(random() % 4), 1 + random() % 40),
                               .width = 1 + static_cast<int64_t>(random() % 5),
                               .max_tokens = 1 + static_cast<int64_t>(random() % 30),
                               .ignore_eos = random() % 2 == 0};
        auto request = std::make_shared<EngineCoreRequest>(*BeamRequest(next_id, spec));
        request->interactive = random() % 4 == 0;
        request->priority = static_cast<int64_t>(random() % 3);
        if (random() % 3 == 0) request->sampling_params = {};  // no beams
        request->sampling_params.max_tokens = spec.max_tokens;
        if (request->sampling_params.use_beam_search) specs[next_id] = spec;
        engine_core.AddRequest(request);
        next_id += static_cast<RequestId>(spec.width);
      }
      if (random() % 40 == 0 && !specs.empty()) {
        // An abort by any id that belongs to the request; the ids without a live beam are unknown.
        const auto victim = std::next(specs.begin(), static_cast<std::ptrdiff_t>(random() % specs.size()));
        std::vector<RequestId> ids;
        for (int64_t i = 0; i < victim->second.width; ++i) ids.push_back(victim->first + static_cast<RequestId>(i));
        engine_core.AbortRequests(ids);
        specs.erase(victim);
      }
      engine_core.SetAdmissionPaused(step < 100 && step % 20 > 15);
      engine_core.Step(outputs);
      for (size_t i = 0; i < outputs.size(); ++i) Collect(outputs[i]);
      ASSERT_EQ(engine_core.scheduler().CheckIntegrity(), "") << "round " << round;
    }
    ASSERT_FALSE(engine_core.HasUnfinishedRequests());
    for (const auto& [id, spec] : specs) {
      if (answers_[id].error.empty()) ExpectReference(id, spec);
    }
  }
}

TEST_F(BeamSearchEngineTest, AnAbortWithOutputEndsAllSequences) {
  EngineCore engine_core(config_, FakeExecutorFactory(model_));
  engine_core.AddRequest(BeamRequest(5, {.prompt = Prompt(3, 10), .width = 3, .max_tokens = 50, .ignore_eos = true}));
  EngineCoreOutputs outputs;
  for (int i = 0; i < 5; ++i) engine_core.Step(outputs);
  outputs.Clear();
  const RequestId id = 6;
  engine_core.AbortWithOutput({&id, 1}, outputs);
  ASSERT_EQ(outputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(outputs[i].request_id, 5 + i);
    EXPECT_EQ(outputs[i].finish_reason, FinishReason::kAbort);
  }
}

}  // namespace
}  // namespace vllm
