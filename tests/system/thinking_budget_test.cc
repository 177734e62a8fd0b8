// Tests thinking_token_budget in the whole engine. The model is app/guide_model with two of its tokens as think tags.
// The forced tokens are those that RequestOptions::prior_output_token_ids would set.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/reasoning/reasoning_format.h"
#include "tests/support/cancelling_executor.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thinking_model.h"
#include "tests/system/guide_config.h"
#include "tests/system/run_requests.h"

namespace vllm {
namespace {

using testing_support::GuideConfig;
using testing_support::kEndThinkId;
using testing_support::kThinkId;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::TestRequest;

using Ids = std::vector<int32_t>;

class ThinkingBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    format_ = DetectReasoningFormat("", tokenizer_);
    ASSERT_NE(format_, nullptr);
    engine_ = std::make_unique<LLMEngine>(GuideConfig(), tokenizer_, MakeThreadClient(GuideConfig(), MakeExecutor));
    engine_->SetReasoningFormat(format_);
  }

  SamplingParams Params(int64_t seed, double temperature = 0.9) const {
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.temperature = temperature;
    params.seed = static_cast<uint64_t>(seed);
    params.max_tokens = 30;
    params.ignore_eos = true;
    // The random choice of a tag would end the thought early.
    params.logit_bias = {{kThinkId, -100.0f}, {kEndThinkId, -100.0f}};
    return params;
  }

  Ids Prompt(const std::string& question) const {
    Ids ids = tokenizer_->Encode("<s><|user|>" + question + "</s><|assistant|>\n<think>", false);
    EXPECT_EQ(ids.back(), kThinkId);
    return ids;
  }

  Ids Run(const Ids& prompt, const SamplingParams& params, const Ids& prior = {}) {
    RequestOptions options;
    options.prior_output_token_ids = prior;
    engine_->AddRequest("id", prompt, params, options);
    Ids ids;
    while (engine_->HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine_->Step()) {
        if (output.finished) ids = output.outputs.at(0).token_ids;
      }
    }
    return ids;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = testing_support::ThinkingTokenizer();
  std::shared_ptr<const ReasoningFormat> format_;
  std::unique_ptr<LLMEngine> engine_;
};

TEST_F(ThinkingBudgetTest, EndMarkerFollowsExactlyTheBudget) {
  for (const int64_t budget : {0, 1, 7, 20}) {
    SamplingParams params = Params(budget + 1);
    params.allowed_token_ids = Ids();
    for (int32_t id = 300; id < 2000; ++id) params.allowed_token_ids->push_back(id);  // whole characters only
    const Ids free = Run(Prompt("What is a batch?"), params);
    params.thinking_token_budget = budget;
    const Ids limited = Run(Prompt("What is a batch?"), params);
    ASSERT_EQ(limited.size(), 30u);
    EXPECT_EQ(Ids(limited.begin(), limited.begin() + budget), Ids(free.begin(), free.begin() + budget));
    EXPECT_EQ(limited[static_cast<size_t>(budget)], kEndThinkId) << "allowed_token_ids do not stop the marker";
    // The answer is that of a request whose thought was ended by its caller.
    SamplingParams unlimited = params;
    unlimited.thinking_token_budget.reset();
    const Ids begin(limited.begin(), limited.begin() + budget + 1);
    EXPECT_EQ(Ids(limited.begin() + budget + 1, limited.end()), Run(Prompt("What is a batch?"), unlimited, begin));
  }
}

TEST_F(ThinkingBudgetTest, ContinuingAfterEveryTokenGivesTheRest) {
  SamplingParams params = Params(5);
  params.thinking_token_budget = 9;
  const Ids prompt = Prompt("What is a batch?");
  const Ids whole = Run(prompt, params);
  for (size_t k = 1; k < whole.size(); ++k) {
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(k);
    EXPECT_EQ(Run(prompt, params, Ids(whole.begin(), middle)), Ids(middle, whole.end())) << k;
  }
}

TEST_F(ThinkingBudgetTest, BudgetThatIsNotReachedChangesNothing) {
  for (const double temperature : {0.0, 0.9}) {
    SamplingParams params = Params(3, temperature);
    params.logprobs = 2;
    std::map<std::string, std::string> results[2];
    for (const bool is_limited : {false, true}) {
      if (is_limited) params.thinking_token_budget = 30;
      const std::vector<TestRequest> requests = {{"thinks", Prompt("What is a batch?"), params},
                                                 {"answers", TextPrompt{"What is a batch?"}, params}};
      results[is_limited ? 1 : 0] =
          RunRequests(GuideConfig(), tokenizer_, requests, {.reasoning_format = format_}).outputs;
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST_F(ThinkingBudgetTest, TokensDoNotDependOnTheSchedule) {
  std::vector<TestRequest> requests;
  for (int i = 0; i < 24; ++i) {
    SamplingParams params = Params(i, i % 3 == 0 ? 0.0 : 0.9);
    params.thinking_token_budget = i % 12;
    if (i % 4 == 1) params.logprobs = 1;
    if (i % 4 == 2) params.n = i % 3 == 0 ? 1 : 2;
    Ids prompt = Prompt("question " + std::to_string(i) + std::string(static_cast<size_t>(3 * i), 'x'));
    if (i % 5 == 4) prompt.pop_back();  // the thought is not open
    requests.push_back({"request " + std::to_string(i), prompt, params});
  }
  const auto base =
      RunRequests(GuideConfig(0, 2048, 1), tokenizer_, requests, {.one_at_a_time = true, .reasoning_format = format_});
  const auto expect_same = [&](const VllmConfig& config, bool preempts = false) {
    const auto result = RunRequests(config, tokenizer_, requests, {.reasoning_format = format_});
    EXPECT_EQ(result.outputs, base.outputs);
    EXPECT_TRUE(!preempts || result.stats.num_preemptions > 0);
  };
  expect_same(GuideConfig());
  expect_same(GuideConfig(0, 16));
  expect_same(GuideConfig(0, 37, 3));
  expect_same(GuideConfig(20), /*preempts=*/true);
  // Every third step is cancelled and rolled back.
  const RunHow cancels = {.in_process = true,
                          .factory = testing_support::CancellingExecutor::Factory(
                              [](int64_t attempt) { return attempt % 3 == 1 ? attempt % 7 : -1; }),
                          .reasoning_format = format_};
  EXPECT_EQ(RunRequests(GuideConfig(), tokenizer_, requests, cancels).outputs, base.outputs);
}

TEST_F(ThinkingBudgetTest, RanksAgree) {
  std::vector<TestRequest> requests;
  for (int i = 0; i < 6; ++i) {
    SamplingParams params = Params(i);
    params.thinking_token_budget = i;
    requests.push_back({"request " + std::to_string(i), Prompt("question " + std::to_string(i)), params});
  }
  const auto run = [&](int64_t max_num_seqs) {
    return RunRequests(GuideConfig(0, 2048, max_num_seqs, 2), tokenizer_, requests, {.reasoning_format = format_})
        .outputs;
  };
  EXPECT_EQ(run(1), run(128));
}

TEST_F(ThinkingBudgetTest, ModelWithoutMarkersRejectsABudget) {
  engine_->SetReasoningFormat(nullptr);
  SamplingParams params = Params(1);
  params.thinking_token_budget = 5;
  EXPECT_EQ(
      MessageOf<RequestError>([&] {
        engine_->AddRequest("id", Ids{1, 2}, params);
      }),
      "thinking_token_budget: this model has no known marker that ends its thinking (5); --reasoning-parser names "
      "one");
  params.thinking_token_budget = -2;
  EXPECT_EQ(MessageOf<RequestError>([&] {
              engine_->AddRequest("id", Ids{1, 2}, params);
            }),
            "thinking_token_budget: below -1 (-2)");
  params.thinking_token_budget = -1;
  EXPECT_EQ(Run({1, 2}, params).size(), 30u);
}

}  // namespace
}  // namespace vllm
