// Tests that speculation does not change results, to the last bit, with app/guide_model: right, wrong and too many
// drafts, all kinds of sampling, structured outputs, thinking budgets, preemption, prefix hits, ranks and cancelled
// steps.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/reasoning/reasoning_format.h"
#include "tests/support/cancelling_executor.h"
#include "tests/support/draft_proposers.h"
#include "tests/support/thinking_model.h"
#include "tests/system/guide_config.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::CancellingExecutor;
using testing_support::DraftKind;
using testing_support::EngineSetup;
using testing_support::GuideConfig;
using testing_support::GuideDirectory;
using testing_support::kEndThinkId;
using testing_support::kThinkId;
using testing_support::MakeConfig;
using testing_support::MixedRequests;
using testing_support::RecordedOutputs;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::RunResult;
using testing_support::TestRequest;
using testing_support::VerifyAll;
using testing_support::WithDrafts;
using testing_support::WithRecorder;
using Ids = std::vector<int32_t>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

class SpeculationTest : public testing::Test {
 protected:
  // Runs the requests without drafts.
  void RunBase(VllmConfig config) {
    // The recorder proposes no token. It only sees the requests.
    config.speculative = VerifyAll(1);
    config.structured_outputs.enable_jump_decoding = false;
    recorded_ = std::make_shared<RecordedOutputs>();
    const RunHow record = {
        .one_at_a_time = true, .factory = WithRecorder(MakeExecutor, recorded_), .reasoning_format = format_};
    const auto recorded = RunRequests(config, tokenizer_, requests_, record).outputs;
    config.speculative = {};
    base_ = RunRequests(config, tokenizer_, requests_, {.one_at_a_time = true, .reasoning_format = format_}).outputs;
    ASSERT_EQ(base_.size(), requests_.size());
    ASSERT_EQ(recorded, base_);
    for (const auto& [id, output] : base_) {
      if (output.rfind("rejected", 0) == 0) ADD_FAILURE() << id << " " << output;
    }
  }

  void ExpectBase(const VllmConfig& config, DraftKind kind, RunHow how = {}) {
    how.factory = WithDrafts(how.factory, kind, recorded_, ++seed_);
    ExpectBase(config, how);
  }

  void ExpectBase(const VllmConfig& config, RunHow how = {}) {
    how.reasoning_format = format_;
    const RunResult result = RunRequests(config, tokenizer_, requests_, how);
    ASSERT_EQ(result.outputs.size(), base_.size());
    for (const auto& [id, output] : base_) EXPECT_EQ(result.outputs.at(id), output) << id;
    stats_ = result.stats;
    all_stats_.Add(result.stats.spec_decoding);
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = tokenizer::LoadTokenizer(GuideDirectory());
  std::shared_ptr<const ReasoningFormat> format_;
  std::vector<TestRequest> requests_ = kIsSlow ? MixedRequests(16, 60) : MixedRequests(48, 120);
  std::shared_ptr<RecordedOutputs> recorded_;
  std::map<std::string, std::string> base_;
  SchedulerStats stats_;
  SpecDecodingStats all_stats_;
  uint32_t seed_ = 0;
};

TEST_F(SpeculationTest, DraftsDoNotChangeResults) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  for (int64_t k = 1; k <= 12; ++k) {
    for (const DraftKind kind : {DraftKind::kRight, DraftKind::kRandom, DraftKind::kMixed, DraftKind::kOverlong}) {
      if (kIsSlow && (k + static_cast<int64_t>(kind)) % 6 != 0) continue;
      EngineSetup setup = {.max_num_seqs = k % 2 == 0 ? 64 : 3, .speculative = VerifyAll(k)};
      setup.max_num_batched_tokens = k % 3 == 0 ? 2048 : 20 * k;
      setup.prefix_caching = k % 4 != 0;
      if (k % 3 == 1) setup.num_blocks = 24;
      if (k % 5 == 0) setup.threads = 2;
      if (k % 5 == 1) setup.long_prefill_token_threshold = 30;
      if (k % 5 == 2) setup.policy = SchedulingPolicy::kPriority;
      if (k % 6 == 5) setup.engines = 2;
      ExpectBase(MakeConfig(GuideDirectory(), setup), kind, {.in_process = k % 2 == 0});
      if (HasFailure()) FAIL() << "k " << k << ", kind " << static_cast<int>(kind);
    }
  }
  EXPECT_GT(all_stats_.Total().num_accepted_tokens, 1000);
  EXPECT_GT(all_stats_.Total().num_draft_tokens, 2 * all_stats_.Total().num_accepted_tokens);
}

TEST_F(SpeculationTest, RightDraftsAreAllAccepted) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  std::erase_if(requests_,
                [](const TestRequest& request) { return request.params.n > 1 || !request.params.stop.empty(); });
  std::erase_if(base_, [&](const auto& entry) {
    return std::none_of(requests_.begin(), requests_.end(),
                        [&](const auto& request) { return request.id == entry.first; });
  });
  ExpectBase(MakeConfig(GuideDirectory(), {.speculative = VerifyAll(6)}), DraftKind::kRight);
  const auto& stats = stats_.spec_decoding;
  EXPECT_GT(stats.Total().num_accepted_tokens, 100);
  // Random tokens follow the end of a recorded output, and greedy requests with the same prompt record the same tokens.
  EXPECT_GT(stats.Total().num_accepted_tokens * 10, stats.Total().num_draft_tokens * 8);
}

TEST_F(SpeculationTest, DraftsOnTwoRanksDoNotChangeResults) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  for (const DraftKind kind : {DraftKind::kRight, DraftKind::kRandom, DraftKind::kMixed}) {
    ExpectBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 64, .ranks = 2, .speculative = VerifyAll(5)}), kind);
    ExpectBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 7,
                                             .max_num_batched_tokens = 33,
                                             .prefix_caching = false,
                                             .num_blocks = 24,
                                             .ranks = 2,
                                             .speculative = VerifyAll(12)}),
               kind);
  }
}

TEST_F(SpeculationTest, CancelledStepsWithDraftsDoNotChangeResults) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  int64_t num_cancelled = 0;
  const auto plan = [&num_cancelled](int64_t attempt) { return attempt % 3 == 2 ? num_cancelled++ * 7 % 120 : -1; };
  const RunHow how = {.in_process = true, .factory = CancellingExecutor::Factory(plan)};
  for (const DraftKind kind : {DraftKind::kRight, DraftKind::kMixed}) {
    ExpectBase(
        MakeConfig(GuideDirectory(), {.max_num_seqs = 16, .max_num_batched_tokens = 100, .speculative = VerifyAll(4)}),
        kind, how);
    ExpectBase(
        MakeConfig(GuideDirectory(), {.max_num_seqs = 64, .num_blocks = 24, .threads = 2, .speculative = VerifyAll(9)}),
        kind, how);
  }
  EXPECT_GT(num_cancelled, 30);
}

TEST_F(SpeculationTest, InteractiveRequestsWithDraftsDoNotChangeResults) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  for (size_t i = 0; i < requests_.size(); i += 3) requests_[i].options.interactive = true;
  for (const bool in_process : {true, false}) {
    const RunHow how = {.in_process = in_process, .num_steps_between = 2};
    ExpectBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 4, .speculative = VerifyAll(7)}), DraftKind::kMixed, how);
    ExpectBase(
        MakeConfig(GuideDirectory(),
                   {.max_num_seqs = 16, .max_num_batched_tokens = 100, .num_blocks = 24, .speculative = VerifyAll(3)}),
        DraftKind::kRight, how);
  }
}

TEST_F(SpeculationTest, DraftsDoNotChangeResultsOfQuantizedCaches) {
  for (const kernels::KVDType dtype : {kernels::KVDType::kInt8, kernels::KVDType::kFloat16}) {
    RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1, .cache_dtype = dtype}));
    ExpectBase(
        MakeConfig(
            GuideDirectory(),
            {.max_num_seqs = 64, .max_num_batched_tokens = 100, .cache_dtype = dtype, .speculative = VerifyAll(8)}),
        DraftKind::kMixed);
    ExpectBase(MakeConfig(GuideDirectory(), {.threads = 2, .cache_dtype = dtype, .speculative = VerifyAll(3)}),
               DraftKind::kRight);
  }
}

TEST_F(SpeculationTest, MethodsDoNotChangeResults) {
  // Prompts that repeat, so that the methods find matches.
  for (TestRequest& request : requests_) {
    if (const auto* ids = std::get_if<Ids>(&request.prompt)) {
      Ids repeated = *ids;
      repeated.insert(repeated.end(), ids->begin(), ids->end());
      request.prompt = repeated;
    }
  }
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  for (const SpeculativeMethod method : {SpeculativeMethod::kNgram, SpeculativeMethod::kSuffix}) {
    for (const bool adaptive : {false, true}) {
      SpeculativeConfig config;
      config.method = method;
      config.adaptive = adaptive;
      config.prompt_lookup_min = 1;
      config.prompt_lookup_max = 3;
      ExpectBase(MakeConfig(GuideDirectory(), {.speculative = config}));
      if (!adaptive) {
        EXPECT_GT(stats_.spec_decoding.Total().num_draft_tokens, 0);
      }
      ExpectBase(
          MakeConfig(GuideDirectory(), {.max_num_seqs = 3, .num_blocks = 30, .threads = 2, .speculative = config}));
    }
  }
}

TEST_F(SpeculationTest, DraftModelsDoNotChangeResults) {
  RunBase(MakeConfig(GuideDirectory(), {.max_num_seqs = 1}));
  // The model drafts for itself, so the drafts of greedy requests are right.
  SpeculativeConfig speculative = VerifyAll(4);
  speculative.method = SpeculativeMethod::kDraftModel;
  for (const int64_t seqs : {3, 64}) {
    VllmConfig config = MakeConfig(GuideDirectory(), {.max_num_seqs = seqs, .speculative = speculative});
    config.draft = std::make_shared<VllmConfig>(MakeConfig(GuideDirectory(), {.max_num_seqs = 16, .threads = 2}));
    ExpectBase(config);
    EXPECT_GT(2 * stats_.spec_decoding.Total().num_accepted_tokens, stats_.spec_decoding.Total().num_draft_tokens);
  }
}

// Requests with schemas, with and without logprobs, which decide whether steps are spent on forced tokens.
std::vector<TestRequest> StructuredRequests() {
  const std::vector<std::string> schemas = {
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"enum":[1,20,300]},"ok":{"type":"boolean"}},)"
      R"("required":["name","ok"],"additionalProperties":false})",
      R"({"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"minItems":2,"maxItems":4})",
      R"({"anyOf":[{"const":{"a":[null,"é\"😀"]}},{"type":"string","maxLength":20}]})",
      "",
  };
  std::vector<TestRequest> requests;
  for (int i = 0; i < 24; ++i) {
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.temperature = i % 4 == 0 ? 0.0 : 2.0;
    params.seed = static_cast<uint64_t>(i);
    params.max_tokens = 10 + 5 * (i % 10);
    if (i % 3 == 1) params.logprobs = 1;
    if (i % 7 == 3) params.n = 2;
    if (i % 8 == 5) params.min_tokens = 12;
    const std::string& schema = schemas[static_cast<size_t>(i) % schemas.size()];
    if (!schema.empty()) params.structured_outputs = StructuredOutputsParams{schema};
    requests.push_back({"request " + std::to_string(i),
                        TextPrompt{"question " + std::to_string(i) + std::string(static_cast<size_t>(3 * i), 'x')},
                        params});
  }
  return requests;
}

TEST_F(SpeculationTest, DraftsDoNotChangeStructuredOutputs) {
  requests_ = StructuredRequests();
  RunBase(GuideConfig(0, 2048, 1));
  for (const bool jumps : {true, false}) {
    for (int64_t k = 1; k <= 12; k += kIsSlow ? 5 : 1) {
      const auto kind = static_cast<DraftKind>(k % 4);
      VllmConfig config = k % 3 == 0 ? GuideConfig(20) : GuideConfig(0, k % 3 == 1 ? 2048 : 37, 1 + k * 5);
      config.structured_outputs.enable_jump_decoding = jumps;
      config.speculative = VerifyAll(k);
      ExpectBase(config, kind);
      if (HasFailure()) FAIL() << "k " << k << ", jump decoding " << jumps;
    }
  }
  EXPECT_GT(all_stats_.Total().num_accepted_tokens, 500);
}

TEST_F(SpeculationTest, ForcedTokensAreDrafts) {
  requests_ = StructuredRequests();
  RunBase(GuideConfig(0, 2048, 1));
  for (const bool jumps : {true, false}) {
    for (const bool adaptive : {true, false}) {
      VllmConfig config = GuideConfig();
      config.structured_outputs.enable_jump_decoding = jumps;
      config.speculative.method = SpeculativeMethod::kGrammar;
      config.speculative.adaptive = adaptive;
      ExpectBase(config);
      const auto& stats = stats_.spec_decoding.methods[static_cast<size_t>(SpeculativeMethod::kGrammar)];
      // How much is drafted adaptively depends on the time of steps.
      if (!adaptive) {
        EXPECT_GT(stats.num_draft_tokens, jumps ? 3 : 20);
      }
      EXPECT_EQ(stats.num_accepted_tokens, stats.num_draft_tokens);
    }
  }
}

TEST_F(SpeculationTest, DraftsDoNotChangeThinkingBudgets) {
  tokenizer_ = testing_support::ThinkingTokenizer();
  format_ = DetectReasoningFormat("", tokenizer_);
  requests_.clear();
  for (int i = 0; i < 16; ++i) {
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.temperature = 0.9;
    params.seed = static_cast<uint64_t>(i);
    params.max_tokens = 30;
    params.ignore_eos = i % 4 != 3;
    params.logit_bias = {{kThinkId, -100.0f}, {kEndThinkId, i % 2 == 0 ? -100.0f : 2.0f}};
    params.thinking_token_budget = i;
    if (i % 4 == 3) params.structured_outputs = StructuredOutputsParams{R"({"type":"string","maxLength":9})"};
    requests_.push_back(
        {"request " + std::to_string(i),
         tokenizer_->Encode("<s><|user|>What " + std::to_string(i) + "?</s><|assistant|>\n<think>", false), params});
  }
  RunBase(GuideConfig(0, 2048, 1));
  for (int64_t k = 1; k <= 12; k += kIsSlow ? 5 : 1) {
    VllmConfig config = GuideConfig(0, 2048, 1 + k);
    config.speculative = VerifyAll(k);
    ExpectBase(config, static_cast<DraftKind>(k % 4));
  }
  EXPECT_GT(all_stats_.Total().num_accepted_tokens, 100);
}

TEST_F(SpeculationTest, DraftsDoNotChangeThoughtsMarkedInText) {
  format_ = MakeReasoningFormat(*FindReasoningFamily("granite"), /*by_name=*/true, tokenizer_);
  ASSERT_EQ(format_->kind, ReasoningFormat::Kind::kText);
  requests_.clear();
  for (int i = 0; i < 12; ++i) {
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.seed = static_cast<uint64_t>(i);
    params.max_tokens = 40;
    params.thinking_token_budget = 2 * i;
    if (i % 4 == 3) params.structured_outputs = StructuredOutputsParams{R"({"type":"string","maxLength":9})"};
    requests_.push_back({"request " + std::to_string(i), TextPrompt{"What? Here is my thought process:"}, params});
  }
  RunBase(GuideConfig(0, 2048, 1));
  for (int64_t k = 1; k <= 12; k += kIsSlow ? 5 : 1) {
    VllmConfig config = GuideConfig(0, 2048, 1 + k);
    config.speculative = VerifyAll(k);
    ExpectBase(config, static_cast<DraftKind>(k % 4));
  }
  EXPECT_GT(all_stats_.Total().num_accepted_tokens, 100);
}

}  // namespace
}  // namespace vllm
