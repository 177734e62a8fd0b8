// Tests the matcher on random grammars, compared with the slow one.
#include "engine/structured_output/matcher/grammar_automaton.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

using testing_support::SlowMatcher;

std::shared_ptr<const VocabTrie> NoVocabulary() {
  return std::make_shared<const VocabTrie>(std::vector<std::string>(), 0);
}

// A grammar over the letters a, b and c, with terminals that may be empty, rules that may be empty, and recursion of
// all kinds. Equal seeds make equal grammars.
Grammar RandomGrammar(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](uint64_t n) { return random() % n; };
  GrammarBuilder builder;
  RegexStore& regexes = builder.regexes();
  std::vector<SymbolId> symbols;
  for (uint64_t i = 0; i < 2 + pick(3); ++i) {
    std::string text;
    for (uint64_t j = 0; j < 1 + pick(2); ++j) text.push_back(static_cast<char>('a' + pick(3)));
    RegexId regex = regexes.Literal(text);
    if (pick(3) == 0)
      regex = regexes.Repeat(regex, static_cast<uint32_t>(pick(2)), pick(2) == 0 ? 3 : RegexStore::kUnbounded);
    if (pick(4) == 0) regex = regexes.Or({regex, regexes.Literal("c")});
    symbols.push_back(builder.AddTerminal(regex));
  }
  std::vector<SymbolId> rules;
  for (uint64_t i = 0; i < 2 + pick(3); ++i) {
    rules.push_back(builder.AddRule());
    symbols.push_back(rules.back());
  }
  for (const SymbolId rule : rules) {
    for (uint64_t i = 0; i < 1 + pick(3); ++i) {
      std::vector<SymbolId> sequence;
      for (uint64_t j = 0; j < pick(4); ++j) sequence.push_back(symbols[pick(symbols.size())]);
      if (pick(5) == 0 && !sequence.empty()) {
        const SymbolId separator = pick(2) == 0 ? GrammarBuilder::kNoSymbol : symbols[0];
        sequence[0] = builder.AddRepeat(sequence[0], separator, static_cast<uint32_t>(pick(3)),
                                        pick(2) == 0 ? 3 : GrammarBuilder::kUnbounded);
      }
      builder.AddAlternative(rule, sequence);
    }
  }
  return builder.Finish(rules[0]);
}

TEST(GrammarAutomatonTest, RandomGrammarsAgreeWithTheSlowMatcher) {
  size_t num_accepted = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SlowMatcher slow(RandomGrammar(seed));
    GrammarAutomaton fast(RandomGrammar(seed), NoVocabulary());
    std::mt19937_64 random(seed);
    for (int round = 0; round < 6; ++round) {
      GrammarAutomaton::Position position;
      slow.Start();
      ASSERT_EQ(fast.MayEnd(position), slow.MayEnd()) << "seed " << seed;
      for (int i = 0; i < 10; ++i) {
        const char byte = static_cast<char>('a' + random() % 3);
        const std::string text = position.text + byte;
        const bool is_allowed = fast.Advance(position, std::string_view(&byte, 1));
        ASSERT_EQ(is_allowed, slow.Step(static_cast<uint8_t>(byte))) << "seed " << seed << ": " << text;
        if (!is_allowed) break;
        ASSERT_EQ(fast.MayEnd(position), slow.MayEnd()) << "seed " << seed << ": " << text;
        num_accepted += fast.MayEnd(position) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_accepted, 3000u);
}

}  // namespace
}  // namespace vllm
