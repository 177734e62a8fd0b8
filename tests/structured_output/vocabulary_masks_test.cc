// Compares masks with trying every token, for several kinds of constraints and vocabularies: byte-level BPE, BPE of
// characters with tokens for bytes, unigram, and large ones.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/support/realdata.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using testing_support::RealData;
using Kind = StructuredOutputsParams::Kind;
using Bytes = std::vector<std::string>;

std::vector<StructuredOutputsParams> Constraints() {
  return {
      {R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"tags":{"type":"array","items":)"
       R"({"enum":["é😀","x\"y",12.5,null]}},"when":{"format":"date-time"},"parts":{"items":{"$ref":"#"}}},)"
       R"("required":["name"],"additionalProperties":{"type":"number","multipleOf":0.25,"maximum":1000}})"},
      {.text =
           R"({"type":"object","properties":{"id":{"type":"string","pattern":"^[a-z日本]{2,}$"},)"
           R"("ok":{"type":"boolean"},"n":{"type":"integer","minimum":-7,"maximum":1234}},"additionalProperties":false,"minProperties":2})",
       .any_order = true,
       .flexible_whitespace = true},
      {R"((the |a )?[A-Za-z ]+(é|日本)*\.\n?)", Kind::kRegex},
      {"", Kind::kChoice, {"the answer is yes", "the answer is no", "日本語"}},
      {R"(.*([0-9A-F]{4}-|id)[a-z0-9_.]+|(?:\S+\s+){0,9}[^\s,]+)", Kind::kRegex},
      {"root ::= \"(\" (root | [a-z 0-9]+ | \"é\")* \")\"", Kind::kGrammar},
  };
}

bool Allows(const TokenBitmask& mask, size_t id) { return (mask[id / 32] >> (id % 32) & 1) != 0; }

// At `num_positions` positions of random texts of each constraint, compares the mask with the result of appending each
// token of the vocabulary.
void CompareWithEveryToken(const Bytes& bytes, size_t num_positions) {
  const auto trie = std::make_shared<const VocabTrie>(bytes, static_cast<int64_t>(bytes.size()));
  const auto no_tokens = std::make_shared<const VocabTrie>(Bytes(), 0);
  std::mt19937 random(3);
  for (const StructuredOutputsParams& params : Constraints()) {
    GrammarAutomaton automaton(CompileGrammar(params, {}), trie);
    GrammarAutomaton reference(CompileGrammar(params, {}), no_tokens);
    GrammarAutomaton::Position position, reference_position;
    for (size_t i = 0; i < num_positions; ++i) {
      TokenBitmask mask;
      try {
        mask = automaton.AllowedTokens(position);
      } catch (const GrammarLimitError&) {
        // A small vocabulary may have no token for what must follow.
        mask = TokenBitmask(bytes.size() / 32 + 1, 0);
      }
      std::vector<size_t> allowed;
      for (size_t id = 0; id < bytes.size(); ++id) {
        GrammarAutomaton::Position next = reference_position;
        const bool expected = !bytes[id].empty() && reference.Advance(next, bytes[id]);
        ASSERT_EQ(Allows(mask, id), expected) << "id " << id << " after " << position.text;
        if (expected) allowed.push_back(id);
      }
      if (allowed.empty()) {
        position = reference_position = {};
        continue;
      }
      const std::string& next = bytes[allowed[random() % allowed.size()]];
      ASSERT_TRUE(automaton.Advance(position, next));
      ASSERT_TRUE(reference.Advance(reference_position, next));
    }
  }
}

void CompareFixture(const std::string& name) {
  const auto tokenizer = tokenizer::LoadTokenizerJson(std::string(VLLMCLI_TEST_DATA) + "/tokenizer/" + name);
  CompareWithEveryToken(*tokenizer::TokenBytes(*tokenizer), 100);
}

void CompareRealVocabulary(const std::string& name) {
  CompareWithEveryToken(*tokenizer::TokenBytes(*tokenizer::LoadTokenizer(RealData("tokenizers/" + name))), 12);
}

TEST(VocabularyMasksTest, OfByteLevelBpe) { CompareFixture("byte_level.json"); }
TEST(VocabularyMasksTest, OfBpeWithTokensForBytes) { CompareFixture("byte_fallback.json"); }
TEST(VocabularyMasksTest, OfUnigram) { CompareFixture("unigram.json"); }
TEST(VocabularyMasksTest, OfUnigramWithTokensForBytes) { CompareFixture("unigram_bytes.json"); }

TEST(VocabularyMasksTest, OfThirtyThousandTokensForCharactersAndBytes) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/phi-3-mini");
  CompareRealVocabulary("phi-3-mini");
}

TEST(VocabularyMasksTest, OfAHundredAndFiftyThousandTokens) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/qwen2.5");
  CompareRealVocabulary("qwen2.5");
}

// Words, parts of JSON, and pieces of characters, in random combinations.
TEST(VocabularyMasksTest, OfTwoHundredAndFiftySixThousandTokens) {
  const Bytes parts = {" ", "the", " the", "answer", "is",       "\"",       "\":",      "\",\"", "{\"",
                       "}", "]",   "[",    ",",      ":",        "0",        "12",       ".5",    "-",
                       "(", ")",   ").",   "name",   "tags",     "\\u00",    "\\n",      "\n",    "\n  ",
                       "é", "日",  "本",   "語",     "\xF0\x9F", "\x98\x80", "\xE6\x97", "\xA5",  "T",
                       "Z", "a",   "xy",   "true",   "null",     "\xFF",     "_",        "20"};
  Bytes bytes;
  for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
  bytes.emplace_back();
  std::mt19937 random(11);
  while (bytes.size() < 256'000) {
    std::string text;
    const size_t num_parts = 1 + random() % 5;
    for (size_t i = 0; i < num_parts; ++i) text += parts[random() % parts.size()];
    bytes.push_back(std::move(text));
  }
  CompareWithEveryToken(bytes, 12);
}

}  // namespace
}  // namespace vllm
