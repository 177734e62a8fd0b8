// Tests structured_outputs in the whole engine, with app/guide_model: every complete output is a text of the schema,
// the schedule does not change the tokens, and greedy outputs equal those of a reference that tries every token.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/reasoning/reasoning_format.h"
#include "engine/structured_output/continuation_tokens.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"
#include "engine/tool_calls/tool_call_parser.h"
#include "tests/structured_output/grammar_text.h"
#include "tests/support/cancelling_executor.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thinking_model.h"
#include "tests/system/guide_config.h"
#include "tests/system/run_requests.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::GrammarText;
using testing_support::GuideConfig;
using testing_support::kEndThinkId;
using testing_support::kThinkId;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::TestRequest;
using Ids = std::vector<int32_t>;

const std::vector<std::string> kSchemas = {
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"enum":[1,20,300]},"ok":{"type":"boolean"}},)"
    R"("required":["name","ok"],"additionalProperties":false})",
    R"({"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"minItems":2,"maxItems":4})",
    R"({"anyOf":[{"const":{"a":[null,"é\"😀"]}},{"type":"string","maxLength":20}]})",
    R"({"$defs":{"tree":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"$ref":"#/$defs/tree"})",
};

class StructuredOutputTest : public testing::Test {
 protected:
  static SamplingParams Params(const std::string& schema, int64_t seed, double temperature = 2.0) {
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.temperature = temperature;
    params.seed = static_cast<uint64_t>(seed);
    params.max_tokens = 60;
    if (!schema.empty()) params.structured_outputs = StructuredOutputsParams{schema};
    return params;
  }

  // Requests with and without a schema, which stop at the end of the text.
  static std::vector<TestRequest> Requests() {
    std::vector<TestRequest> requests;
    for (int i = 0; i < 30; ++i) {
      const size_t kind = static_cast<size_t>(i) % (kSchemas.size() + 1);
      SamplingParams params = Params(kind < kSchemas.size() ? kSchemas[kind] : "", i, i % 4 == 0 ? 0.0 : 2.0);
      if (i % 5 == 1) params.logprobs = 1;
      if (i % 7 == 2) params.n = 2;
      requests.push_back({"request " + std::to_string(i),
                          TextPrompt{"question " + std::to_string(i) + std::string(static_cast<size_t>(3 * i), 'x')},
                          params});
    }
    return requests;
  }

  RequestOutput Run(const Prompt& prompt, const SamplingParams& params, const Ids& prior = {}) {
    if (engine_ == nullptr) {
      engine_ = std::make_unique<LLMEngine>(GuideConfig(), tokenizer_, MakeThreadClient(GuideConfig(), MakeExecutor));
      engine_->SetReasoningFormat(format_);
    }
    RequestOptions options;
    options.prior_output_token_ids = prior;
    engine_->AddRequest("id", prompt, params, options);
    RequestOutput last;
    while (engine_->HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine_->Step()) last = output;
    }
    return last;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = tokenizer::LoadTokenizer(testing_support::GuideDirectory());
  std::shared_ptr<const ReasoningFormat> format_;
  std::unique_ptr<LLMEngine> engine_;
};

TEST_F(StructuredOutputTest, CompleteOutputsAreTextsOfTheSchema) {
  size_t num_complete = 0;
  for (size_t i = 0; i < 60; ++i) {
    const std::string& schema = kSchemas[i % kSchemas.size()];
    GrammarText grammar(schema);
    const RequestOutput output = Run(TextPrompt{"Write JSON."}, Params(schema, static_cast<int64_t>(i)));
    ASSERT_EQ(output.error, "");
    if (output.outputs[0].finish_reason != FinishReason::kStop) continue;
    ++num_complete;
    EXPECT_TRUE(grammar.Accepts(output.outputs[0].text)) << output.outputs[0].text;
  }
  EXPECT_GT(num_complete, 40u);
}

TEST_F(StructuredOutputTest, GreedyOutputsEqualTryingEveryToken) {
  const std::vector<std::string> bytes = *tokenizer::TokenBytes(*tokenizer_);
  const int32_t eos = GuideConfig().model.eos_token_ids.at(0);
  for (const std::string& schema : kSchemas) {
    const Ids prompt = tokenizer_->Encode("What is a batch?", true);
    const RequestOutput constrained = Run(prompt, Params(schema, 1, 0.0));
    GrammarAutomaton automaton(CompileJsonSchema(schema),
                               std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
    const VocabTrie trie(bytes, static_cast<int64_t>(bytes.size()));
    Ids reference;
    GrammarAutomaton::Position position;
    while (reference.size() < 60 && (reference.empty() || reference.back() != eos)) {
      SamplingParams params = Params("", 1, 0.0);
      params.allowed_token_ids = Ids();
      if (automaton.MayEnd(position)) params.allowed_token_ids->push_back(eos);
      // A text that must follow is encoded as a whole. Its last token is free, unless nothing follows.
      const ForcedText forced = automaton.Forced(position, 1000);
      const Ids forced_ids = ContinuationTokens(*tokenizer_, trie, forced.bytes);
      const bool is_forced = forced_ids.size() > 1 || (forced_ids.size() == 1 && forced.ends);
      if (is_forced) params.allowed_token_ids->push_back(forced_ids[0]);
      for (size_t id = 0; id < bytes.size() && !is_forced; ++id) {
        GrammarAutomaton::Position next = position;
        if (bytes[id].empty() || !automaton.Advance(next, bytes[id])) continue;
        params.allowed_token_ids->push_back(static_cast<int32_t>(id));
      }
      params.max_tokens = static_cast<int64_t>(reference.size()) + 1;
      const int32_t id = Run(prompt, params, reference).outputs.at(0).token_ids.at(0);
      reference.push_back(id);
      if (id != eos) automaton.Advance(position, bytes[static_cast<size_t>(id)]);
    }
    EXPECT_EQ(constrained.outputs[0].token_ids, reference) << schema;
  }
}

TEST_F(StructuredOutputTest, TokensDoNotDependOnTheSchedule) {
  const std::vector<TestRequest> requests = Requests();
  VllmConfig one_token_per_step = GuideConfig(0, 2048, 1);
  one_token_per_step.structured_outputs.enable_jump_decoding = false;
  const auto base = RunRequests(one_token_per_step, tokenizer_, requests, {.one_at_a_time = true});
  const auto expect_same = [&](const VllmConfig& config, bool preempts = false) {
    const auto result = RunRequests(config, tokenizer_, requests);
    EXPECT_EQ(result.outputs, base.outputs);
    EXPECT_TRUE(!preempts || result.stats.num_preemptions > 0);
  };
  expect_same(GuideConfig());
  expect_same(GuideConfig(0, 16));
  expect_same(GuideConfig(0, 3, 2));
  expect_same(GuideConfig(0, 37, 3));
  expect_same(GuideConfig(20), /*preempts=*/true);
  // Every third step is cancelled and rolled back.
  const RunHow cancels = {.in_process = true,
                          .factory = testing_support::CancellingExecutor::Factory(
                              [](int64_t attempt) { return attempt % 3 == 1 ? attempt % 7 : -1; })};
  EXPECT_EQ(RunRequests(GuideConfig(), tokenizer_, requests, cancels).outputs, base.outputs);
}

TEST_F(StructuredOutputTest, RanksAgree) {
  const std::vector<TestRequest> requests = Requests();
  const auto run = [&](int64_t max_num_seqs) {
    return RunRequests(GuideConfig(0, 2048, max_num_seqs, 2), tokenizer_, requests).outputs;
  };
  EXPECT_EQ(run(1), run(128));
}

TEST_F(StructuredOutputTest, ContinuingAfterEveryTokenGivesTheRest) {
  const Ids prompt = tokenizer_->Encode("What is a batch?", true);
  const SamplingParams params = Params(kSchemas[0], 4);
  const Ids whole = Run(prompt, params).outputs.at(0).token_ids;
  ASSERT_GT(whole.size(), 8u);
  for (size_t k = 1; k < whole.size(); ++k) {
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(k);
    EXPECT_EQ(Run(prompt, params, Ids(whole.begin(), middle)).outputs.at(0).token_ids, Ids(middle, whole.end())) << k;
  }
}

TEST_F(StructuredOutputTest, AThoughtComesBeforeTheConstrainedAnswer) {
  tokenizer_ = testing_support::ThinkingTokenizer();
  format_ = DetectReasoningFormat("", tokenizer_);
  Ids prompt = tokenizer_->Encode("<s><|user|>What?</s><|assistant|>\n<think>", false);
  ASSERT_EQ(prompt.back(), kThinkId);
  SamplingParams params = Params(kSchemas[1], 9);
  params.thinking_token_budget = 10;
  params.logit_bias = {{kEndThinkId, -100.0f}};
  const RequestOutput constrained = Run(prompt, params);
  const Ids& ids = constrained.outputs.at(0).token_ids;
  ASSERT_GT(ids.size(), 12u);
  EXPECT_EQ(ids[10], kEndThinkId);
  // The thought is that of a request without a schema.
  params.structured_outputs.reset();
  const Ids free = Run(prompt, params).outputs.at(0).token_ids;
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 11), Ids(free.begin(), free.begin() + 11));
  Ids answer(ids.begin() + 11, ids.end());
  EXPECT_TRUE(GrammarText(kSchemas[1]).Accepts(tokenizer_->Decode(answer, true))) << tokenizer_->Decode(answer, true);
}

TEST_F(StructuredOutputTest, AThoughtWithMarkersInTextComesBeforeTheAnswer) {
  format_ = MakeReasoningFormat(*FindReasoningFamily("granite"), /*by_name=*/true, tokenizer_);
  ASSERT_EQ(format_->kind, ReasoningFormat::Kind::kText);
  GrammarText grammar(kSchemas[1]);
  for (int i = 0; i < 10; ++i) {
    SamplingParams params = Params(kSchemas[1], i);
    params.thinking_token_budget = 5;
    params.max_tokens = 100;
    const RequestOutput output = Run(TextPrompt{"What? Here is my thought process:"}, params);
    const std::string& text = output.outputs.at(0).text;
    const size_t end = text.find("response:");
    ASSERT_NE(end, std::string::npos) << text;
    EXPECT_EQ(output.outputs[0].valid, true) << text;
    EXPECT_TRUE(grammar.Accepts(text.substr(text.find_first_not_of(" \n\r\t", end + 9)))) << text;
  }
}

TEST_F(StructuredOutputTest, TheConstraintMayApplyToTheThought) {
  tokenizer_ = testing_support::ThinkingTokenizer();
  VllmConfig config = GuideConfig();
  config.structured_outputs.enable_in_reasoning = true;
  engine_ = std::make_unique<LLMEngine>(config, tokenizer_, MakeThreadClient(config, MakeExecutor));
  engine_->SetReasoningFormat(DetectReasoningFormat("", tokenizer_));
  SamplingParams params = Params(R"({"const":"x"})", 3);
  EXPECT_EQ(Run(TextPrompt{"What?<think>"}, params).outputs.at(0).text, "\"x\"");
  params.thinking_token_budget = 4;
  EXPECT_EQ(MessageOf<RequestError>([&] { Run(TextPrompt{"What?<think>"}, params); }),
            "thinking_token_budget: not possible where structured_outputs constrains the thinking");
}

TEST_F(StructuredOutputTest, OtherKindsOfConstraintsMatchTheirTexts) {
  using Kind = StructuredOutputsParams::Kind;
  for (int i = 0; i < 10; ++i) {
    SamplingParams params = Params("", i);
    params.structured_outputs = StructuredOutputsParams{"[a-c]{2,4}-[0-9]{2}", Kind::kRegex};
    std::string text = Run(TextPrompt{"x"}, params).outputs.at(0).text;
    const size_t dash = text.find('-');
    EXPECT_TRUE(dash >= 2 && dash <= 4 && text.size() == dash + 3) << text;
    EXPECT_EQ(text.find_first_not_of("abc"), dash) << text;
    EXPECT_EQ(text.find_first_not_of("0123456789", dash + 1), std::string::npos) << text;
    params.structured_outputs = StructuredOutputsParams{"", Kind::kChoice, {"yes", "no", "perhaps"}};
    text = Run(TextPrompt{"x"}, params).outputs.at(0).text;
    EXPECT_TRUE(text == "yes" || text == "no" || text == "perhaps") << text;
    params.structured_outputs = StructuredOutputsParams{"root ::= \"a\" root \"b\" | \"-\"", Kind::kGrammar};
    const RequestOutput output = Run(TextPrompt{"x"}, params);
    text = output.outputs.at(0).text;
    const size_t depth = text.find('-');
    ASSERT_NE(depth, std::string::npos) << text;
    if (output.outputs[0].valid == true) {
      EXPECT_EQ(text, std::string(depth, 'a') + "-" + std::string(depth, 'b'));
    }
  }
}

TEST_F(StructuredOutputTest, CallsOfToolsAreParsedAndMatchTheirSchemas) {
  const auto tools = std::make_shared<const ToolSet>(ParseToolDefinitions(
      R"([{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":["x","yy"]},"b":{"type":"boolean"}},)"
      R"("required":["a"],"additionalProperties":false}},{"name":"g","parameters":{"additionalProperties":false}}])"));
  GrammarText schema(tools->tools()[0].parameters, {.any_order = true, .flexible_whitespace = true});
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kNumRequests = 4;  // of each format; more would take longer than a test may
#else
  constexpr int kNumRequests = 12;
#endif
  int num_complete = 0;
  for (const ToolCallFormat& format : ToolCallFormats()) {
    for (int i = 0; i < kNumRequests; ++i) {
      SamplingParams params = Params("", i, i % 3 == 0 ? 0.0 : 2.0);
      params.skip_special_tokens = false;
      params.max_tokens = 200;
      params.structured_outputs = ToolCallParams({&format, /*must_call=*/i % 2 == 0, i % 4 < 2, tools->tools()});
      const RequestOutput output = Run(TextPrompt{"Call it. " + std::string(static_cast<size_t>(i), 'x')}, params);
      ASSERT_EQ(output.error, "") << format.name;
      if (output.outputs[0].finish_reason != FinishReason::kStop) continue;
      const ToolCallOutput calls = ParseToolCalls(format, tools, "request", output.outputs[0].text);
      EXPECT_EQ(calls.error, "") << output.outputs[0].text;
      if (i % 2 == 0) {
        EXPECT_GE(calls.calls.size(), 1u) << output.outputs[0].text;
        ++num_complete;
      }
      for (const ToolCall& call : calls.calls) {
        EXPECT_EQ(call.error, "") << output.outputs[0].text;
        EXPECT_TRUE(call.name != "f" || schema.Accepts(call.arguments)) << output.outputs[0].text;
      }
    }
  }
  EXPECT_GT(num_complete, kNumRequests * 5 / 2);
}

TEST_F(StructuredOutputTest, ACallFollowsTheThought) {
  tokenizer_ = testing_support::ThinkingTokenizer();
  format_ = DetectReasoningFormat("", tokenizer_);
  const Ids prompt = tokenizer_->Encode("<s><|user|>What?</s><|assistant|>\n<think>", false);
  ASSERT_EQ(prompt.back(), kThinkId);
  SamplingParams params = Params("", 9);
  params.max_tokens = 150;
  params.thinking_token_budget = 10;
  params.logit_bias = {{kEndThinkId, -100.0f}};
  const ToolCallFormat* hermes = FindToolCallFormat("hermes");
  params.structured_outputs = ToolCallParams(
      {hermes, /*must_call=*/true, false, ParseToolDefinitions(R"([{"name":"g","parameters":{"maxProperties":0}}])")});
  const Ids ids = Run(prompt, params).outputs.at(0).token_ids;
  ASSERT_GT(ids.size(), 11u);
  EXPECT_EQ(ids[10], kEndThinkId);
  const std::string answer = tokenizer_->Decode(Ids(ids.begin() + 11, ids.end()), true);
  const ToolCallOutput output = ParseToolCalls(*hermes, nullptr, "request", answer);
  ASSERT_EQ(output.calls.size(), 1u) << answer;
  EXPECT_EQ(output.calls[0].name + output.error, "g") << answer;
}

TEST_F(StructuredOutputTest, AnAnswerThatIsCutIsNotValid) {
  SamplingParams params = Params(R"({"type":"string","minLength":40})", 1);
  params.max_tokens = 5;
  RequestOutput output = Run(TextPrompt{"x"}, params);
  EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::kLength);
  EXPECT_EQ(output.outputs[0].valid, false);
  params = Params(R"({"type":"boolean"})", 1);
  output = Run(TextPrompt{"x"}, params);
  EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::kStop);
  EXPECT_EQ(output.outputs[0].valid, true);
  params.structured_outputs.reset();
  EXPECT_EQ(Run(TextPrompt{"x"}, params).outputs.at(0).valid, std::nullopt);
}

// min_tokens delays the end where the text may continue, and gives way where it may not.
TEST_F(StructuredOutputTest, MinTokensGivesWayAtTheEndOfTheText) {
  SamplingParams params = Params(R"({"type":"array","items":{"const":1}})", 1);
  params.min_tokens = 30;
  RequestOutput output = Run(TextPrompt{"x"}, params);
  EXPECT_EQ(output.error, "");
  params = Params(R"({"enum":[1,111111]})", 3);
  params.min_tokens = 4;
  output = Run(TextPrompt{"x"}, params);
  EXPECT_EQ(output.outputs.at(0).text, "111111");
  params = Params(R"({"const":7})", 3);
  params.min_tokens = 20;
  output = Run(TextPrompt{"x"}, params);
  EXPECT_EQ(output.outputs.at(0).text, "7");
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kStop);
}

TEST_F(StructuredOutputTest, ImpossibleRequestsAreRejected) {
  const auto error_of = [&](const SamplingParams& params, const Ids& prior = {}) {
    const RequestOutput output = Run(Ids{1, 2}, params, prior);
    EXPECT_TRUE(output.rejected);
    return output.error;
  };
  EXPECT_EQ(error_of(Params(R"({"format":"idn-email"})", 1)), "JSON schema: #/format: not supported (idn-email)");
  SamplingParams params = Params(kSchemas[1], 1);
  params.ignore_eos = true;
  EXPECT_EQ(MessageOf<RequestError>([&] {
              Run(Ids{1, 2}, params);
            }),
            "structured_outputs: not possible with ignore_eos");
  EXPECT_EQ(error_of(Params(kSchemas[1], 1), tokenizer_->Encode("x", false)),
            "prior_output_token_ids: structured_outputs does not allow these tokens");
  // A later constraint of the request may exclude all tokens of the schema. Only this request fails.
  params = Params(kSchemas[1], 1);
  params.allowed_token_ids = tokenizer_->Encode("x", false);
  const RequestOutput output = Run(Ids{1, 2}, params);
  EXPECT_EQ(output.error, "no token remains to sample: all logits are -inf");
  EXPECT_FALSE(output.rejected);
}

}  // namespace
}  // namespace vllm
