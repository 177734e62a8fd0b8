// Tests the tokens that a grammar allows, compared with trying every token of the vocabulary, and the rules for tokens
// that end the output or begin a thought.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "engine/reasoning/reasoning_format.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/output_constraint.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/structured_output/grammar_text.h"
#include "tests/support/realdata.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thinking_model.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::RealData;

constexpr char kPerson[] =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"tags":{"type":"array","items":{"enum":["é😀","x\"y",12.5,null]}},)"
    R"("age":{"type":"integer"}},"required":["name"],"additionalProperties":{"$ref":"#"}})";

bool Allows(const TokenBitmask& mask, int32_t id) { return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0; }

std::shared_ptr<const CompiledGrammar> Compile(const char* schema, const tokenizer::Tokenizer& tokenizer,
                                               int64_t vocab_size) {
  return std::make_shared<const CompiledGrammar>(
      CompileJsonSchema(schema), std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(tokenizer), vocab_size));
}

// At each position of random texts of the schema, compares the mask with the result of appending each token to the
// text of a new position.
void CompareWithEveryToken(const tokenizer::Tokenizer& tokenizer, size_t num_positions) {
  const int64_t vocab_size = tokenizer.VocabSize() + 40;
  const auto grammar = Compile(kPerson, tokenizer, vocab_size);
  const std::vector<std::string> bytes = *tokenizer::TokenBytes(tokenizer);
  GrammarAutomaton reference(CompileJsonSchema(kPerson),
                             std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  std::mt19937 random(7);
  GrammarAutomaton::Position position;
  for (size_t i = 0; i < num_positions; ++i) {
    const TokenBitmask mask = grammar->automaton.AllowedTokens(position);
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < vocab_size; ++id) {
      const bool has_bytes = static_cast<size_t>(id) < bytes.size() && !bytes[static_cast<size_t>(id)].empty();
      GrammarAutomaton::Position fresh;
      const bool expected = has_bytes && reference.Advance(fresh, position.text + bytes[static_cast<size_t>(id)]);
      ASSERT_EQ(Allows(mask, id), expected) << "id " << id << " after " << position.text;
      if (expected) allowed.push_back(id);
    }
    if (allowed.empty()) {
      position = {};
      continue;
    }
    ASSERT_TRUE(grammar->automaton.Advance(position, bytes[static_cast<size_t>(allowed[random() % allowed.size()])]));
  }
}

TEST(TokenMaskTest, MasksEqualTryingEveryToken) {
  CompareWithEveryToken(*testing::MakeByteTokenizer({{R"(\"name\":\")", false}, {"}}", false}, {"é", false}}), 300);
  CompareWithEveryToken(*tokenizer::LoadTokenizer(testing_support::GuideDirectory()), 60);
}

TEST(TokenMaskTest, MasksOfRealVocabulariesEqualTryingEveryToken) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/phi-3-mini");
  for (const char* name : {"phi-3-mini", "qwen2.5", "gpt2"}) {
    SCOPED_TRACE(name);
    CompareWithEveryToken(*tokenizer::LoadTokenizer(RealData(std::string("tokenizers/") + name)), 12);
  }
}

// Drafts of 1 and of 12 random tokens are appended to copies. They leave the matcher as it was, also if a draft ends
// with a stop token or the automaton discards its states.
TEST(TokenMaskTest, ACopyOfTheMatcherRollsBackAnyNumberOfTokens) {
  const auto tokenizer = testing::MakeByteTokenizer({{R"(\"name\":\")", false}, {"}}", false}, {"é", false}});
  const auto vocab_size = static_cast<int32_t>(tokenizer->VocabSize());
  const int32_t stop = vocab_size - 1;
  const auto grammar = Compile(kPerson, *tokenizer, vocab_size);
  std::mt19937 random(3);
  size_t num_drafts = 0;
  const auto append_random = [&](GrammarMatcher& matcher) {
    TokenBitmask mask;
    matcher.FillBitmask(mask);
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < vocab_size; ++id) {
      if (Allows(mask, id)) allowed.push_back(id);
    }
    ASSERT_TRUE(matcher.AcceptToken(allowed[random() % allowed.size()]));
  };
  for (int round = 0; round < 10; ++round) {
    GrammarMatcher matcher(grammar, std::span(&stop, 1));
    for (size_t i = 0; i < 60 && !matcher.is_terminated(); ++i) {
      TokenBitmask before;
      const bool may_continue = matcher.FillBitmask(before);
      for (size_t k = 1; k <= 12; k += 11) {
        GrammarMatcher draft = matcher;
        for (size_t j = 0; j < k && !draft.is_terminated(); ++j) append_random(draft);
        if (i % 16 == 0) grammar->automaton.TryDiscardStates();
        TokenBitmask after;
        ASSERT_EQ(matcher.FillBitmask(after), may_continue);
        ASSERT_EQ(after, before) << "token " << i << ", draft of " << k;
        ++num_drafts;
      }
      append_random(matcher);
    }
  }
  EXPECT_GT(num_drafts, 100u);
}

// The grammar is so large that the automaton discards its states many times.
TEST(TokenMaskTest, DiscardedStatesAreMadeAgain) {
  const auto tokenizer = testing::MakeByteTokenizer();
  GrammarAutomaton automaton(CompileJsonSchema(R"({"type":"string","minLength":9000,"maxLength":9000})"),
                             std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer), 300));
  GrammarAutomaton::Position position;
  ASSERT_TRUE(automaton.Advance(position, "\""));
  GrammarAutomaton::Position early = position;
  ASSERT_TRUE(automaton.Advance(position, std::string(9000, 'x')));
  const TokenBitmask last = automaton.AllowedTokens(position);
  for (int32_t id = 0; id < 300; ++id) EXPECT_EQ(Allows(last, id), id == '"') << id;
  EXPECT_FALSE(Allows(automaton.AllowedTokens(early), '"'));
  EXPECT_TRUE(Allows(automaton.AllowedTokens(early), 'x'));
}

class OutputConstraintTest : public ::testing::Test {
 protected:
  static OutputConstraint Make(const char* schema, std::shared_ptr<const ReasoningFormat> format = nullptr,
                               std::vector<int32_t> prompt = {1}) {
    EngineCoreRequest request;
    request.prompt_token_ids = std::move(prompt);
    request.sampling_params.eos_token_id = 257;
    request.sampling_params.stop_token_ids = {'z'};
    const tokenizer::Tokenizer& tokenizer = format == nullptr ? *tokenizer_ : *format->tokenizer;
    request.grammar = Compile(schema, tokenizer, 320);
    request.reasoning_format = std::move(format);
    return OutputConstraint(request);
  }
  static std::vector<int32_t> AllowedOf(OutputConstraint& constraint) {
    TokenBitmask mask;
    std::vector<int32_t> ids;
    if (!constraint.FillBitmask(mask)) return {-1};
    for (int32_t id = 0; id < 320; ++id) {
      if (Allows(mask, id)) ids.push_back(id);
    }
    return ids;
  }
  static inline const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
};

using Ids = std::vector<int32_t>;

TEST_F(OutputConstraintTest, StopTokensAreAllowedOnlyWhereTheTextMayEnd) {
  OutputConstraint constraint = Make(R"({"enum":[1,12]})");
  EXPECT_EQ(AllowedOf(constraint), Ids{'1'});
  EXPECT_FALSE(constraint.Feed(257));
  EXPECT_TRUE(constraint.Feed('1'));
  EXPECT_EQ(AllowedOf(constraint), (Ids{'2', 'z', 257}));
  EXPECT_TRUE(constraint.Feed('2'));
  EXPECT_EQ(AllowedOf(constraint), (Ids{'z', 257}));
  EXPECT_TRUE(constraint.Feed(257));
  EXPECT_FALSE(constraint.Feed('2'));
  EXPECT_EQ(AllowedOf(constraint), (Ids{'z', 257}));
}

TEST_F(OutputConstraintTest, ATokenThatIsNotAllowedChangesNothing) {
  OutputConstraint constraint = Make(R"({"const":"ab"})");
  EXPECT_TRUE(constraint.Feed('"'));
  EXPECT_FALSE(constraint.Feed('b'));
  EXPECT_FALSE(constraint.Feed(testing::kBos));
  EXPECT_EQ(AllowedOf(constraint), Ids{'a'});
}

TEST_F(OutputConstraintTest, ATextThatExceedsALimitEndsWithAnError) {
  OutputConstraint constraint =
      Make(R"({"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"array","items":{"$ref":"#"},"maxItems":9}]})");
  int num_accepted = 0;
  while (num_accepted < 1000 && constraint.Feed('[')) ++num_accepted;
  EXPECT_EQ(num_accepted, 513);
  TokenBitmask mask;
  EXPECT_EQ(MessageOf<std::runtime_error>([&] { constraint.FillBitmask(mask); }),
            "the text is nested too deeply (more than 512 levels)");
}

TEST_F(OutputConstraintTest, AThoughtIsNotConstrained) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer =
      testing::MakeByteTokenizer({{"<think>", true}, {"</think>", true}});
  const auto format = DetectReasoningFormat("", tokenizer);
  ASSERT_NE(format, nullptr);
  OutputConstraint constraint = Make(R"({"const":1})", format);
  EXPECT_EQ(AllowedOf(constraint), (Ids{'1', format->start_id}));
  EXPECT_TRUE(constraint.Feed(format->start_id));
  EXPECT_EQ(AllowedOf(constraint), Ids{-1});
  EXPECT_TRUE(constraint.Feed('x'));
  EXPECT_TRUE(constraint.Feed(format->end_id));
  EXPECT_EQ(AllowedOf(constraint), Ids{'1'});
  // A prompt that ends inside a thought.
  OutputConstraint inside = Make(R"({"const":1})", format, {1, format->start_id});
  EXPECT_EQ(AllowedOf(inside), Ids{-1});
  EXPECT_TRUE(inside.Feed(format->end_id));
  EXPECT_EQ(AllowedOf(inside), Ids{'1'});
}

}  // namespace
}  // namespace vllm
