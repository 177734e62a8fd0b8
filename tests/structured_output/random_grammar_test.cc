// Compares random grammars in GBNF and Lark with a plain translation, whose terminals are single characters.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/structured_output/dialects/grammar_dialect.h"
#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

using testing_support::SlowMatcher;

constexpr int kNumRules = 3;

// A random grammar in both dialects, and the same as rules.
class TwoDialectGrammar {
 public:
  explicit TwoDialectGrammar(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kNumRules; ++i) rules_.push_back(builder_.AddRule());
    for (int i = 0; i < kNumRules; ++i) {
      const Part body = Alternatives(1);
      builder_.AddAlternative(rules_[static_cast<size_t>(i)], {body.symbol});
      gbnf_ += (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + body.gbnf + "\n";
      lark_ += (i == 0 ? "start" : "r" + std::to_string(i)) + ": " + body.lark + "\n";
    }
    const SymbolId start = builder_.AddRule();
    builder_.AddAlternative(start, {rules_[0]});
    grammar_ = builder_.Finish(start);
  }

  const std::string& gbnf() const { return gbnf_; }
  const std::string& lark() const { return lark_; }
  Grammar TakeGrammar() { return std::move(grammar_); }

 private:
  struct Part {
    std::string gbnf, lark;
    SymbolId symbol;
  };

  uint64_t Pick(uint64_t n) { return random_() % n; }
  SymbolId Character(char c) { return builder_.AddTerminal(builder_.regexes().Literal(std::string(1, c))); }

  Part Alternatives(int depth) {
    Part part = Sequence(depth);
    const SymbolId rule = builder_.AddRule();
    builder_.AddAlternative(rule, {part.symbol});
    for (uint64_t n = Pick(2); n > 0; --n) {
      const Part other = Sequence(depth);
      part.gbnf += " | " + other.gbnf;
      part.lark += " | " + other.lark;
      builder_.AddAlternative(rule, {other.symbol});
    }
    part.symbol = rule;
    return part;
  }

  Part Sequence(int depth) {
    Part part{"", "", builder_.AddRule()};
    std::vector<SymbolId> symbols;
    for (uint64_t n = 1 + Pick(2); n > 0; --n) {
      const Part next = Repeated(depth);
      part.gbnf += next.gbnf + " ";
      part.lark += next.lark + " ";
      symbols.push_back(next.symbol);
    }
    builder_.AddAlternative(part.symbol, symbols);
    return part;
  }

  Part Repeated(int depth) {
    Part part = Atom(depth);
    const SymbolId rule = builder_.AddRule();
    std::string suffix;
    switch (Pick(8)) {
      case 0:
        suffix = "*";
        builder_.AddAlternative(rule, {});
        builder_.AddAlternative(rule, {rule, part.symbol});
        break;
      case 1:
        suffix = "+";
        builder_.AddAlternative(rule, {part.symbol});
        builder_.AddAlternative(rule, {rule, part.symbol});
        break;
      case 2:
        suffix = "?";
        builder_.AddAlternative(rule, {});
        builder_.AddAlternative(rule, {part.symbol});
        break;
      case 3:
        suffix = "{1,2}";
        builder_.AddAlternative(rule, {part.symbol});
        builder_.AddAlternative(rule, {part.symbol, part.symbol});
        break;
      default:
        return part;
    }
    return {part.gbnf + suffix, part.lark + suffix, rule};
  }

  Part Atom(int depth) {
    switch (depth == 0 ? Pick(3) : Pick(6)) {
      case 0: {
        const SymbolId rule = builder_.AddRule();
        builder_.AddAlternative(rule, {Character('a'), Character('b')});
        return {"\"ab\"", "\"ab\"", rule};
      }
      case 1: {
        const SymbolId rule = builder_.AddRule();
        builder_.AddAlternative(rule, {Character('a')});
        builder_.AddAlternative(rule, {Character('b')});
        return {"[ab]", "\"a\"..\"b\"", rule};
      }
      case 2:
        return {"\"b\"", "/b/", Character('b')};
      case 3: {
        const Part group = Alternatives(depth - 1);
        return {"(" + group.gbnf + ")", "(" + group.lark + ")", group.symbol};
      }
      default: {
        const uint64_t i = 1 + Pick(kNumRules - 1);
        return {"r" + std::to_string(i), "r" + std::to_string(i), rules_[i]};
      }
    }
  }

  std::mt19937_64 random_;
  GrammarBuilder builder_;
  std::vector<SymbolId> rules_;
  Grammar grammar_;
  std::string gbnf_, lark_;
};

SlowMatcher MatcherOf(const std::string& text) {
  GrammarBuilder builder;
  const SymbolId symbol = AddGrammarText(builder, text, {}, {});
  return SlowMatcher(FinishGrammar(builder, symbol, "grammar"));
}

TEST(RandomGrammarTest, BothDialectsHaveTheTextsOfThePlainTranslation) {
  size_t num_accepted = 0;
  size_t num_grammars = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    TwoDialectGrammar random(seed);
    Grammar plain = random.TakeGrammar();
    if (!plain.symbol(plain.start()).productive) continue;
    ++num_grammars;
    SlowMatcher expected(std::move(plain));
    SlowMatcher gbnf = MatcherOf(random.gbnf());
    SlowMatcher lark = MatcherOf(random.lark());
    for (unsigned length = 0; length <= 4; ++length) {
      for (unsigned bits = 0; bits < 1u << length; ++bits) {
        std::string text;
        for (unsigned i = 0; i < length; ++i) text += (bits >> i & 1) != 0 ? 'b' : 'a';
        const bool accepts = expected.Accepts(text);
        num_accepted += accepts ? 1 : 0;
        ASSERT_EQ(gbnf.Accepts(text), accepts) << random.gbnf() << text;
        ASSERT_EQ(lark.Accepts(text), accepts) << random.lark() << text;
      }
    }
  }
  EXPECT_GT(num_grammars, 50u);
  EXPECT_GT(num_accepted, 500u);
}

}  // namespace
}  // namespace vllm
