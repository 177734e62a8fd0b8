// Tests the tokens that a GrammarAutomaton allows, compared with trying every token of the vocabulary.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/structured_output/json_like_grammar.h"
#include "tests/support/realdata.h"
#include "tests/support/thinking_model.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::JsonLikeBuilder;
using testing_support::RealData;
using Position = GrammarAutomaton::Position;

bool Allows(const TokenBitmask& mask, int32_t id) { return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0; }

// A text that leads to the terminal or rule `make`, for each way to be in a string or text.
struct Case {
  const char* name;
  std::function<SymbolId(JsonLikeBuilder&)> make;
};

std::vector<Case> Cases() {
  constexpr uint32_t kUnbounded = RegexStore::kUnbounded;
  const auto terminal = [](auto regex) {
    return [regex](JsonLikeBuilder& json) { return json.builder.AddTerminal(regex(json)); };
  };
  const auto containing = [](JsonLikeBuilder& json, const char* text) {
    const RegexId any = AnyText(json.regexes(), TextSpelling::kJsonString);
    return json.regexes().Concat(std::vector<RegexId>{any, json.regexes().Literal(text), any});
  };
  return {
      {"AnyValue", [](JsonLikeBuilder& json) { return json.Value(); }},
      {"AtMost5", terminal([](JsonLikeBuilder& json) { return json.Quoted(json.Characters(0, 5)); })},
      {"AtMost40", terminal([](JsonLikeBuilder& json) { return json.Quoted(json.Characters(2, 40)); })},
      {"Containing", terminal([=](JsonLikeBuilder& json) { return json.Quoted(containing(json, "the")); })},
      {"NotContaining", terminal([=](JsonLikeBuilder& json) {
         return json.Quoted(json.regexes().And(
             {AnyText(json.regexes(), TextSpelling::kJsonString), json.regexes().Not(containing(json, "ing"))}));
       })},
      {"LowerCase",
       terminal([](JsonLikeBuilder& json) { return json.Quoted(json.regexes().Repeat(json.Range('a', 'z'), 1, 30)); })},
      {"TwoEndings",
       [](JsonLikeBuilder& json) {
         const SymbolId rule = json.builder.AddRule();
         json.builder.AddAlternative(rule, {json.builder.AddTerminal(json.AnyString()), json.Text(",1")});
         json.builder.AddAlternative(rule,
                                     {json.builder.AddTerminal(json.Quoted(json.Characters(0, 7))), json.Text(",2")});
         return rule;
       }},
      {"Object",
       [](JsonLikeBuilder& json) {
         const SymbolId string = json.builder.AddTerminal(json.AnyString());
         return json.Object({{"name", string}, {"number", json.builder.AddTerminal(json.Number())}}, string);
       }},
      {"OneCharacter", terminal([](JsonLikeBuilder& json) { return json.Quoted(json.Characters(1, 1)); })},
      {"AnyBytes",
       terminal([](JsonLikeBuilder& json) { return json.regexes().Star(json.regexes().Bytes(ByteSet::All())); })},
      {"Printable",
       terminal([](JsonLikeBuilder& json) { return json.regexes().Repeat(json.Range(0x20, 0x7E), 0, kUnbounded); })},
      {"FreeText", terminal([](JsonLikeBuilder& json) { return AnyText(json.regexes(), TextSpelling::kUtf8); })},
      {"WithoutMarker",
       [](JsonLikeBuilder& json) {
         RegexStore& regexes = json.regexes();
         const RegexId any = AnyText(regexes, TextSpelling::kUtf8);
         const RegexId marked = regexes.Concat(std::vector<RegexId>{any, regexes.Literal("<tool>"), any});
         const SymbolId rule = json.builder.AddRule();
         json.builder.AddAlternative(rule,
                                     {json.builder.AddTerminal(ComplementOfText(regexes, marked, TextSpelling::kUtf8)),
                                      json.Text("<tool>"), json.Value()});
         return rule;
       }},
  };
}

Grammar GrammarOf(const Case& test_case) {
  JsonLikeBuilder json;
  const SymbolId start = test_case.make(json);
  return json.builder.Finish(start);
}

std::string TextOf(const std::vector<std::string>& bytes, int32_t id) {
  return static_cast<size_t>(id) < bytes.size() ? bytes[static_cast<size_t>(id)] : "";
}

// At each position of random texts of all grammars, compares the mask with the result of appending each token. Tokens
// that leave the text open are likely, so that texts get long.
void CompareWithEveryToken(const tokenizer::Tokenizer& tokenizer, size_t num_positions) {
  const std::vector<std::string> bytes = *tokenizer::TokenBytes(tokenizer);
  const int64_t vocab_size = tokenizer.VocabSize() + 40;
  const auto trie = std::make_shared<const VocabTrie>(bytes, vocab_size);
  const auto no_tokens = std::make_shared<const VocabTrie>(std::vector<std::string>(), 0);
  for (const Case& test_case : Cases()) {
    SCOPED_TRACE(test_case.name);
    GrammarAutomaton automaton(GrammarOf(test_case), trie);
    GrammarAutomaton reference(GrammarOf(test_case), no_tokens);
    std::mt19937 random(7);
    Position position, expected_position;
    for (size_t i = 0; i < num_positions; ++i) {
      if (reference.Forced(expected_position, 1).ends) position = expected_position = {};
      const TokenBitmask mask = automaton.AllowedTokens(position);
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < vocab_size; ++id) {
        const std::string text = TextOf(bytes, id);
        Position next = expected_position;
        const bool expected = !text.empty() && reference.Advance(next, text);
        ASSERT_EQ(Allows(mask, id), expected) << "id " << id << " after " << position.text;
        if (expected) allowed.push_back(id);
      }
      const int32_t id = allowed[random() % allowed.size()];
      ASSERT_TRUE(automaton.AdvanceToken(position, id));
      ASSERT_TRUE(reference.Advance(expected_position, TextOf(bytes, id)));
      if (position.text.size() > 60) position = expected_position = {};
    }
  }
}

TEST(AllowedTokensTest, MasksEqualTryingEveryToken) {
  CompareWithEveryToken(*testing::MakeByteTokenizer({{R"(\"name\":\")", false}, {"}}", false}, {"é", false}}), 200);
  CompareWithEveryToken(*tokenizer::LoadTokenizer(testing_support::GuideDirectory()), 60);
}

TEST(AllowedTokensTest, MasksOfRealVocabulariesEqualTryingEveryToken) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/phi-3-mini");
  for (const char* name : {"phi-3-mini", "qwen2.5", "gpt2", "llama3.2"}) {
    SCOPED_TRACE(name);
    CompareWithEveryToken(*tokenizer::LoadTokenizer(RealData(std::string("tokenizers/") + name)), 8);
  }
}

}  // namespace
}  // namespace vllm
