// Tests grammars with the slow matcher.
#include "engine/structured_output/grammar/grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

using testing_support::SlowMatcher;

TEST(GrammarTest, NestedBracketsMatchWhereTheyAreBalanced) {
  GrammarBuilder builder;
  const SymbolId open = builder.AddTerminal(builder.regexes().Literal("["));
  const SymbolId close = builder.AddTerminal(builder.regexes().Literal("]"));
  const SymbolId list = builder.AddRule();
  const SymbolId comma = builder.AddTerminal(builder.regexes().Literal(","));
  builder.AddAlternative(list, {open, builder.AddRepeat(list, comma, 0, 3), close});
  SlowMatcher matcher(builder.Finish(list));
  EXPECT_TRUE(matcher.Accepts("[]"));
  EXPECT_TRUE(matcher.Accepts("[[],[[],[]],[]]"));
  EXPECT_FALSE(matcher.Accepts("[[],]"));
  EXPECT_FALSE(matcher.Accepts("[[],[],[],[]]"));
  EXPECT_FALSE(matcher.Accepts("[[]"));
}

TEST(GrammarTest, AlternativesWithoutTextAreLeftOut) {
  GrammarBuilder builder;
  const SymbolId a = builder.AddTerminal(builder.regexes().Literal("a"));
  const SymbolId loop = builder.AddRule();
  builder.AddAlternative(loop, {a, loop});
  const SymbolId start = builder.AddRule();
  builder.AddAlternative(start, {a});
  builder.AddAlternative(start, {a, loop});
  const Grammar grammar = builder.Finish(start);
  EXPECT_FALSE(grammar.symbol(loop).productive);
  std::vector<SymbolEdge> edges;
  grammar.symbol(start).rule->AppendEdges(0, edges);
  EXPECT_EQ(edges.size(), 1u);
}

TEST(GrammarTest, SymbolsOfTheEmptyTextAreSkipped) {
  GrammarBuilder builder;
  const SymbolId spaces = builder.AddTerminal(builder.regexes().Star(builder.regexes().Literal(" ")));
  const SymbolId x = builder.AddTerminal(builder.regexes().Literal("x"));
  const SymbolId empty = builder.AddRule();
  builder.AddAlternative(empty, {});
  builder.AddAlternative(empty, {spaces, spaces});
  const SymbolId start = builder.AddRule();
  builder.AddAlternative(start, {empty, x, empty});
  SlowMatcher matcher(builder.Finish(start));
  for (const char* text : {"x", " x", "x  ", "   x   "}) EXPECT_TRUE(matcher.Accepts(text)) << text;
  for (const char* text : {"", " ", "xx", "x x"}) EXPECT_FALSE(matcher.Accepts(text)) << text;
}

// Each rule uses the one before it, so a search that goes through the rules backward finds one rule per round.
TEST(GrammarTest, ALongChainOfRulesIsSearchedOnce) {
  GrammarBuilder builder;
  SymbolId rule = builder.AddRule();
  builder.AddAlternative(rule, {});
  for (int i = 0; i < 200'000; ++i) {
    const SymbolId user = builder.AddRule();
    builder.AddAlternative(user, {rule, rule});
    rule = user;
  }
  const Grammar grammar = builder.Finish(rule);
  EXPECT_TRUE(grammar.symbol(rule).productive);
  EXPECT_TRUE(grammar.symbol(rule).nullable);
}

TEST(GrammarTest, TooManyStepsToFindTheRulesWithATextAreAnError) {
  GrammarBuilder builder;
  std::vector<SymbolId> chain = {builder.AddRule()};
  builder.AddAlternative(chain[0], {});
  for (int i = 0; i < 10'000; ++i) {
    chain.push_back(builder.AddRule());
    builder.AddAlternative(chain.back(), {chain[chain.size() - 2]});
  }
  const SymbolId start = builder.AddRule();
  builder.AddAlternative(start, chain);  // every symbol of it is found in another round
  try {
    builder.Finish(start);
    ADD_FAILURE() << "no error";
  } catch (const GrammarLimitError& error) {
    EXPECT_EQ(std::string(error.what()),
              "the grammar needs too many steps to find out which rules have a text (limit 50000000)");
  }
}

}  // namespace
}  // namespace vllm
