// Tests the grammar of calls in the harmony format, whose outputs are messages: thoughts, texts and calls.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/structured_output/thought_grammar.h"
#include "engine/structured_output/tool_calls/call_grammar.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/structured_output/call_outputs.h"
#include "tests/tool_calls/call_text.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::Choice;
using testing_support::ConstraintOf;
using testing_support::Outputs;
using testing_support::StrictTools;
using testing_support::TestTools;

const std::string kNext = "<|end|><|start|>assistant";
const std::string kThought = "<|channel|>analysis<|message|>I need {\"the\"} time: to=functions.get_time";
const std::string kPreamble = "<|channel|>commentary<|message|>Let me see.";
const std::string kFinal = "<|channel|>final<|message|>It is <b>late</b>.";
const std::string kCall = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}";

std::vector<std::string> Marks() {
  return {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"};
}

class HarmonyGrammarTest : public ::testing::TestWithParam<bool> {
 protected:
  // The marks are special tokens, as in the vocabulary of gpt-oss, or text.
  static Outputs Make(Choice choice, bool parallel_calls = true) {
    return Outputs(ConstraintOf("openai", choice, parallel_calls), GetParam() ? Marks() : std::vector<std::string>());
  }
};

TEST_P(HarmonyGrammarTest, MessagesMayComeBeforeACall) {
  Outputs outputs = Make(Choice::kAuto);
  for (const std::string end : {"", "<|call|>"}) {
    EXPECT_TRUE(outputs.Accepts(kCall + end));
    EXPECT_TRUE(outputs.Accepts(kThought + kNext + kCall + end));
    EXPECT_TRUE(outputs.Accepts(kThought + kNext + kPreamble + kNext + kThought + kNext + kCall + end));
    EXPECT_TRUE(outputs.Accepts(kFinal + kNext + kCall + end));
  }
}

TEST_P(HarmonyGrammarTest, AnAnswerNeedsNoCall) {
  Outputs outputs = Make(Choice::kAuto);
  EXPECT_TRUE(outputs.Accepts(kFinal));
  EXPECT_TRUE(outputs.Accepts(kPreamble));
  EXPECT_TRUE(outputs.Accepts(kThought + kNext + kFinal));
  EXPECT_TRUE(outputs.Accepts("<|channel|>final<|message|>"));
  EXPECT_FALSE(outputs.Accepts(kThought)) << "a thought is no answer";
  EXPECT_FALSE(outputs.Accepts(kThought + kNext));
}

TEST_P(HarmonyGrammarTest, ARequiredCallFollowsThoughtsOnly) {
  Outputs outputs = Make(Choice::kRequired);
  EXPECT_TRUE(outputs.Accepts(kCall));
  EXPECT_TRUE(outputs.Accepts(kThought + kNext + kThought + kNext + kCall + "<|call|>"));
  for (const std::string& text : {std::string(), kFinal, kPreamble, kThought, kThought + kNext,
                                  kPreamble + kNext + kCall, kFinal + kNext + kCall}) {
    EXPECT_FALSE(outputs.Accepts(text)) << text;
  }
}

TEST_P(HarmonyGrammarTest, ACallEndsTheOutput) {
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    for (const bool parallel_calls : {false, true}) {
      Outputs outputs = Make(choice, parallel_calls);
      EXPECT_TRUE(outputs.Accepts(kCall + "<|call|>"));
      EXPECT_FALSE(outputs.Accepts(kCall + "<|call|><|start|>assistant" + kCall));
      EXPECT_FALSE(outputs.Accepts(kCall + kNext + kFinal));
      EXPECT_FALSE(outputs.Accepts(kCall + "<|call|>x"));
    }
  }
}

TEST_P(HarmonyGrammarTest, HeadersOfCallsHaveSeveralForms) {
  const std::string arguments = "{\"a\": 1, \"b\":\n  2}";
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    Outputs outputs = Make(choice);
    for (const std::string type : {"", " json", " <|constrain|>json", "<|constrain|>json"}) {
      for (const std::string& header :
           {"<|channel|>commentary to=functions.add" + type, " to=functions.add<|channel|>commentary" + type}) {
        const std::string call = header + "<|message|>" + arguments;
        EXPECT_TRUE(outputs.Accepts(call)) << call;
        EXPECT_TRUE(outputs.Accepts(kThought + kNext + call)) << call;
        const ToolCallOutput output = ParseToolCalls(*FindToolCallFormat("openai"), TestTools(), "request", call);
        ASSERT_EQ(output.calls.size(), 1u) << call;
        EXPECT_EQ(output.calls[0].name + output.calls[0].arguments + output.error, "add" + arguments) << call;
      }
    }
  }
}

TEST_P(HarmonyGrammarTest, OtherMessagesAreRejected) {
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    Outputs outputs = Make(choice);
    for (const std::string text :
         {"Hello", "<|message|>Hello", "<|channel|>other<|message|>Hello",
          "<|channel|>final to=functions.add<|message|>{}", "<|channel|>analysis to=functions.add<|message|>{}",
          "<|channel|>commentary to=functions.subtract<|message|>{}",
          "<|channel|>commentary to=python<|message|>print()", "<|channel|>commentary to=add<|message|>{}",
          "<|channel|>commentary to=functions.add <|constrain|>text<|message|>{}",
          "<|channel|>commentary to=functions.add<|message|>not json",
          "<|channel|>commentary to=functions.add<|message|>",
          "<|channel|>commentary to=functions.add<|message|>{\"a\": \"x\"}",
          "<|channel|>commentary to=functions.add<|message|>{\"a\": 1", " to=functions.add<|message|>{}",
          "<|start|>assistant<|channel|>final<|message|>x",
          "<|channel|>final<|message|>x<|end|><|start|>user<|message|>y", "<|channel|>final<|message|>x<|end|>",
          "<|channel|>final<|message|>x<|channel|>final<|message|>y"}) {
      EXPECT_FALSE(outputs.Accepts(text)) << text;
    }
  }
}

TEST_P(HarmonyGrammarTest, TextDoesNotContainMarks) {
  Outputs outputs = Make(Choice::kAuto);
  for (const std::string mark : {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"}) {
    for (const std::string header : {"final", "commentary"}) {
      Outputs begun = Make(Choice::kAuto);
      const std::string text = "<|channel|>" + header + "<|message|>the mark " + mark + " is text";
      EXPECT_FALSE(outputs.Accepts(text)) << text;
    }
  }
  EXPECT_TRUE(outputs.Accepts("<|channel|>final<|message|>to=functions.add <|x|> <|end"));
}

INSTANTIATE_TEST_SUITE_P(Marks, HarmonyGrammarTest, ::testing::Bool(),
                         [](const auto& is_token) { return is_token.param ? "AreTokens" : "AreText"; });

TEST(HarmonyGrammarTokensTest, MarksAreWrittenAsTokens) {
  Outputs outputs(ConstraintOf("openai", Choice::kAuto), Marks());
  EXPECT_TRUE(outputs.Accepts(kThought + kNext + kCall));
  EXPECT_FALSE(outputs.Accepts(kThought + kNext + kCall, /*with_tokens=*/false));
  EXPECT_FALSE(outputs.Accepts(kFinal, /*with_tokens=*/false));
}

TEST(HarmonyGrammarTokensTest, ArgumentsMatchTheSchemasOfTheirTools) {
  ToolCallConstraint constraint = ConstraintOf("openai", Choice::kAuto);
  constraint.tools = StrictTools();
  Outputs outputs(constraint, Marks());
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "<|channel|>commentary to=functions." + name + "<|message|>" + arguments;
  };
  EXPECT_TRUE(outputs.Accepts(call("get_weather", R"({"days": 3, "city": "Oslo"})")));
  EXPECT_TRUE(outputs.Accepts(call("get_weather", R"({"city":"</parameter>","days":14})")));
  EXPECT_TRUE(outputs.Accepts(call("get_time", "{}")));
  for (const std::string& text :
       {call("get_weather", R"({"city": "Paris", "days": 3})"), call("get_weather", R"({"city": "Oslo"})"),
        call("get_weather", R"({"city": "Oslo", "days": 15})"), call("get_time", R"({"city": "Oslo", "days": 3})"),
        call("note", R"({"text": "abcd abcd"})")}) {
    EXPECT_FALSE(outputs.Accepts(text)) << text;
  }
}

// What a prompt has begun is finished first.
class BegunMessageTest : public ::testing::Test {
 protected:
  bool Accepts(const std::string& prompt, const std::string& output, Choice choice = Choice::kAuto) {
    StructuredOutputsParams params = ToolCallParams(ConstraintOf("openai", choice));
    params.before = BegunMessageGrammar(format_, tokenizer_->Encode(prompt, false));
    GrammarVocabulary vocabulary;
    vocabulary.find = [this](std::string_view text) { return tokenizer_->TokenToId(text); };
    vocabulary.bytes = [this](int32_t id) { return std::optional<std::string>((*bytes_)[static_cast<size_t>(id)]); };
    GrammarAutomaton automaton(CompileGrammar(params, vocabulary), std::make_shared<const VocabTrie>(*bytes_, 300));
    GrammarAutomaton::Position position;
    for (const int32_t id : tokenizer_->Encode(output, false)) {
      if (!automaton.AdvanceToken(position, id)) return false;
    }
    return automaton.MayEnd(position);
  }

  const std::string prompt_ = "<|start|>user<|message|>Q<|end|>";
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ =
      testing::MakeByteTokenizer({{"<|start|>"}, {"<|end|>"}, {"<|message|>"}, {"<|channel|>"}, {"<|constrain|>"}});
  std::optional<std::vector<std::string>> bytes_ = tokenizer::TokenBytes(*tokenizer_);
  std::shared_ptr<const ReasoningFormat> format_ =
      MakeReasoningFormat(*FindReasoningFamily("openai_gptoss"), /*by_name=*/true, tokenizer_);
};

TEST_F(BegunMessageTest, AHeader) {
  EXPECT_TRUE(Accepts(prompt_ + "<|start|>assistant", kThought + kNext + kCall));
  EXPECT_FALSE(Accepts(prompt_ + "<|start|>assistant", "text" + kNext + kCall));
}

TEST_F(BegunMessageTest, NoMessage) {
  EXPECT_TRUE(Accepts(prompt_, "<|start|>assistant" + kCall, Choice::kRequired));
  EXPECT_FALSE(Accepts(prompt_, kCall));
  EXPECT_TRUE(Accepts("no messages", kCall));
}

TEST_F(BegunMessageTest, AThought) {
  const std::string prompt = prompt_ + "<|start|>assistant<|channel|>analysis<|message|>Hm";
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    EXPECT_TRUE(Accepts(prompt, "m" + kNext + kCall, choice));
    EXPECT_TRUE(Accepts(prompt, kNext + kThought + kNext + kCall, choice));
    EXPECT_FALSE(Accepts(prompt, "m", choice));
    EXPECT_FALSE(Accepts(prompt, kCall, choice));
  }
}

TEST_F(BegunMessageTest, AnAnswer) {
  const std::string prompt = prompt_ + "<|start|>assistant<|channel|>final<|message|>";
  EXPECT_TRUE(Accepts(prompt, "text"));
  EXPECT_TRUE(Accepts(prompt, "text" + kNext + kCall));
  EXPECT_FALSE(Accepts(prompt, "to=functions.add"));
  EXPECT_FALSE(Accepts(prompt, "text", Choice::kRequired));
  EXPECT_TRUE(Accepts(prompt, kNext + kCall, Choice::kRequired));
}

}  // namespace
}  // namespace vllm
