// Tests the grammar of thoughts whose markers are text or channels, before the grammar of an answer.
#include "engine/structured_output/thought_grammar.h"

#include <gtest/gtest.h>

#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

class ThoughtGrammarTest : public ::testing::Test {
 protected:
  void SetFormat(const char* family) {
    format_ = MakeReasoningFormat(*FindReasoningFamily(family), /*by_name=*/true, tokenizer_);
    ASSERT_NE(format_, nullptr);
    ASSERT_NE(format_->kind, ReasoningFormat::Kind::kTokens);
  }

  // Returns whether `output` may follow `prompt` and end there, if the answer is 1 or 22.
  bool Accepts(const std::string& prompt, const std::string& output) {
    StructuredOutputsParams params{"", StructuredOutputsParams::Kind::kChoice, {"1", "22"}};
    params.before = ThoughtGrammar(format_, tokenizer_->Encode(prompt, false));
    GrammarAutomaton automaton(CompileGrammar(params, {}),
                               std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer_), 300));
    GrammarAutomaton::Position position;
    for (const int32_t id : tokenizer_->Encode(output, false)) {
      if (!automaton.AdvanceToken(position, id)) return false;
    }
    return automaton.MayEnd(position);
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ =
      testing::MakeByteTokenizer({{"<|start|>"}, {"<|end|>"}, {"<|message|>"}, {"<|channel|>"}, {"</think>1", false}});
  std::shared_ptr<const ReasoningFormat> format_;
};

TEST_F(ThoughtGrammarTest, MarkersInText) {
  SetFormat("qwen3");
  EXPECT_TRUE(Accepts("Q", "1"));
  EXPECT_TRUE(Accepts("Q", "<think>any <text>\n</think>\n\n22"));
  // One token ends the thought and is the answer.
  EXPECT_TRUE(Accepts("Q", "\n<think></think>1"));
  EXPECT_FALSE(Accepts("Q", "<think></think>12"));
  EXPECT_FALSE(Accepts("Q", "<think>1"));
  EXPECT_FALSE(Accepts("Q", "<think></think>2</think>1"));
  EXPECT_FALSE(Accepts("Q", "thought</think>1"));
  EXPECT_TRUE(Accepts("Q<think>\n", "thought</think>1"));
  EXPECT_FALSE(Accepts("Q<think>\n", "1"));
  EXPECT_TRUE(Accepts("Q<think></think>", "1"));
}

TEST_F(ThoughtGrammarTest, MarkersWithOtherSpellings) {
  SetFormat("granite");
  EXPECT_TRUE(Accepts("Q", "Here is my thought process: a Here's my response: 1"));
  EXPECT_TRUE(Accepts("Q", "Here's my thought process:a\nHere is my response:\n22"));
  EXPECT_FALSE(Accepts("Q", "Here is my thought process:a Here's my response:Here is my response:1"));
}

TEST_F(ThoughtGrammarTest, Channels) {
  SetFormat("openai_gptoss");
  const std::string prompt = "<|start|>user<|message|>Q<|end|><|start|>assistant";
  const std::string thought = "<|channel|>analysis<|message|>any text<|end|><|start|>assistant";
  EXPECT_TRUE(Accepts(prompt, "<|channel|>final<|message|>1"));
  EXPECT_TRUE(Accepts(prompt, thought + "<|channel|>final<|message|>22"));
  EXPECT_TRUE(Accepts(prompt, thought + thought + "<|channel|>final<|message|>22"));
  EXPECT_FALSE(Accepts(prompt, thought + "<|channel|>final<|message|>3"));
  EXPECT_FALSE(Accepts(prompt, thought));
  EXPECT_FALSE(Accepts(prompt, "1"));
  EXPECT_TRUE(Accepts(prompt + "<|channel|>final<|message|>", "1"));
  EXPECT_TRUE(
      Accepts(prompt + "<|channel|>analysis<|message|>", "text<|end|><|start|>assistant<|channel|>final<|message|>1"));
}

}  // namespace
}  // namespace vllm
