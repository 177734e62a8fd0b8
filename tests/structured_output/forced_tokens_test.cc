// Tests the tokens that a grammar forces, compared with trying every byte and encoding the only text that remains.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>

#include "engine/structured_output/continuation_tokens.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/realdata.h"
#include "tests/support/thinking_model.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::RealData;
using Ids = std::vector<int32_t>;
using Position = GrammarAutomaton::Position;

constexpr char kSchema[] =
    R"({"type":"object","properties":{"first name of the person":{"type":"string","maxLength":6},)"
    R"("preference":{"enum":["vegetables and fruit","vegetarian","é😀é😀",12]},"a constant":{"const":{"x":[1,null,"日本語"]}}},)"
    R"("required":["first name of the person","preference","a constant"],"additionalProperties":false})";

struct Vocabulary {
  explicit Vocabulary(std::shared_ptr<const tokenizer::Tokenizer> tokenizer_of_model)
      : tokenizer(std::move(tokenizer_of_model)),
        trie(std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer), tokenizer->VocabSize())) {}

  GrammarAutomaton Automaton() const {
    return {CompileJsonSchema(kSchema), trie,
            [this](std::string_view text) { return ContinuationTokens(*tokenizer, *trie, text); }};
  }
  Ids AllOf(const TokenBitmask& mask) const {
    Ids ids;
    for (int32_t id = 0; id < tokenizer->VocabSize(); ++id) {
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
    }
    return ids;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const VocabTrie> trie;
};

// Returns the only text that may follow, found by trying every byte, and whether nothing follows it.
std::pair<std::string, bool> OnlyText(GrammarAutomaton& automaton, Position position) {
  std::string text;
  while (true) {
    std::optional<char> only;
    for (int byte = 0; byte < 256; ++byte) {
      Position next = position;
      if (!automaton.Advance(next, std::string(1, static_cast<char>(byte)))) continue;
      if (only || automaton.MayEnd(position)) return {text, false};
      only = static_cast<char>(byte);
    }
    if (!only) return {text, true};
    text += *only;
    automaton.Advance(position, std::string(1, *only));
  }
}

// Returns how many tokens of random texts of the schema were forced.
size_t CompareWithTryingEveryByte(const Vocabulary& vocabulary, size_t num_positions) {
  GrammarAutomaton automaton = vocabulary.Automaton();
  GrammarAutomaton reference(CompileJsonSchema(kSchema),
                             std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  std::mt19937 random(11);
  Position position;
  size_t num_forced = 0;
  for (size_t i = 0; i < num_positions; ++i) {
    Position plain;
    EXPECT_TRUE(reference.Advance(plain, position.text));
    const auto [text, ends] = OnlyText(reference, plain);
    const Ids ids = ContinuationTokens(*vocabulary.tokenizer, *vocabulary.trie, text);
    const int32_t expected = ids.size() > 1 || (ends && ids.size() == 1) ? ids[0] : -1;
    EXPECT_EQ(automaton.ForcedToken(position), expected) << position.text << "|" << text;
    const Ids allowed = vocabulary.AllOf(automaton.AllowedTokens(position));
    if (allowed.empty()) {
      position = {};
      continue;
    }
    const int32_t next = expected >= 0 ? expected : allowed[random() % allowed.size()];
    EXPECT_TRUE(std::find(allowed.begin(), allowed.end(), next) != allowed.end());
    // The tokens after this one, one at a time.
    Ids one_by_one;
    Position after = position;
    EXPECT_TRUE(automaton.AdvanceToken(after, next));
    for (int32_t id = automaton.ForcedToken(after); id >= 0; id = automaton.ForcedToken(after)) {
      one_by_one.push_back(id);
      EXPECT_TRUE(automaton.AdvanceToken(after, id));
    }
    Ids at_once;
    automaton.AppendForcedAfter(position, next, {}, 1000, at_once);
    EXPECT_EQ(at_once, one_by_one) << position.text;
    num_forced += expected >= 0 ? 1 : 0;
    EXPECT_TRUE(automaton.AdvanceToken(position, next));
  }
  return num_forced;
}

TEST(ForcedTokensTest, EqualTryingEveryByte) {
  EXPECT_GT(CompareWithTryingEveryByte(
                Vocabulary(testing::MakeByteTokenizer({{R"(\"a constant\":)", false}, {"first", false}})), 600),
            300u);
  EXPECT_GT(CompareWithTryingEveryByte(Vocabulary(tokenizer::LoadTokenizer(testing_support::GuideDirectory())), 300),
            50u);
}

TEST(ForcedTokensTest, OfRealVocabulariesEqualTryingEveryByte) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/phi-3-mini");
  for (const char* name : {"phi-3-mini", "qwen2.5", "mistral-7b-v0.3"}) {
    SCOPED_TRACE(name);
    const std::string path = RealData(std::string("tokenizers/") + name);
    EXPECT_GT(CompareWithTryingEveryByte(Vocabulary(tokenizer::LoadTokenizer(path)), 150), 20u);
  }
}

TEST(ForcedTokensTest, AreThoseOfTheWholeText) {
  const Vocabulary vocabulary(tokenizer::LoadTokenizer(testing_support::GuideDirectory()));
  GrammarAutomaton automaton = vocabulary.Automaton();
  Position position;
  Ids forced;
  for (int32_t id = automaton.ForcedToken(position); id >= 0; id = automaton.ForcedToken(position)) {
    forced.push_back(id);
    ASSERT_TRUE(automaton.AdvanceToken(position, id));
  }
  ASSERT_GT(forced.size(), 5u);
  Ids whole = vocabulary.tokenizer->EncodeOrdinary(
      "Answer:\n"
      R"({"first name of the person":")");
  whole.pop_back();
  EXPECT_EQ(forced, Ids(whole.end() - static_cast<std::ptrdiff_t>(forced.size()), whole.end()));
}

TEST(ForcedTokensTest, StopBeforeAnExcludedTokenAndAtTheLimit) {
  const Vocabulary vocabulary(tokenizer::LoadTokenizer(testing_support::GuideDirectory()));
  GrammarAutomaton automaton = vocabulary.Automaton();
  Position position;
  const int32_t first = automaton.ForcedToken(position);
  Ids all, limited, excluded;
  automaton.AppendForcedAfter(position, first, {}, 1000, all);
  ASSERT_GT(all.size(), 3u);
  automaton.AppendForcedAfter(position, first, {}, 2, limited);
  EXPECT_EQ(limited, Ids(all.begin(), all.begin() + 2));
  automaton.AppendForcedAfter(position, first, std::span(all).subspan(1, 1), 1000, excluded);
  EXPECT_EQ(excluded, Ids(all.begin(), all.begin() + 1));
}

TEST(ForcedTokensTest, TextThatIsNotWholeCharactersForcesNothing) {
  const Vocabulary vocabulary(testing::MakeByteTokenizer({}));
  EXPECT_EQ(ContinuationTokens(*vocabulary.tokenizer, *vocabulary.trie, "\xA9 x"), Ids());
  EXPECT_EQ(ContinuationTokens(*vocabulary.tokenizer, *vocabulary.trie, ""), Ids());
}

}  // namespace
}  // namespace vllm
