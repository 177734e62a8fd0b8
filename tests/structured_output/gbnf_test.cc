// Tests GBNF: what its grammars accept, and the errors.
#include "engine/structured_output/dialects/gbnf.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/config/errors.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

bool Accepts(std::string_view grammar, std::string_view text) {
  GrammarAutomaton automaton(ParseGbnf(grammar, {}), std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  GrammarAutomaton::Position position;
  return automaton.Advance(position, text) && automaton.MayEnd(position);
}

std::string ErrorOf(std::string_view grammar) {
  return MessageOf<RequestError>([&] { ParseGbnf(grammar, {}); });
}

TEST(GbnfTest, ArithmeticIsRecursive) {
  constexpr char kGrammar[] = R"gbnf(# sums of products
root  ::= expr "=" ws
expr  ::= term (ws [-+*/] ws term)*
term  ::= ident | num | "(" ws expr ws ")"
ident ::= [a-z] [a-z0-9_]*
num   ::= [0-9]+
ws    ::= [ \t\n]*
)gbnf";
  for (const char* text : {"1=", "x + (2*y)=", "((a))=\n", "a-b- c="}) EXPECT_TRUE(Accepts(kGrammar, text)) << text;
  for (const char* text : {"1", "(1=", "1++2=", "=", "a b="}) EXPECT_FALSE(Accepts(kGrammar, text)) << text;
}

TEST(GbnfTest, RepetitionsAreExact) {
  EXPECT_TRUE(Accepts("root ::= \"ab\"{2} [x]{1,} .? ", "ababxé"));
  EXPECT_FALSE(Accepts("root ::= \"ab\"{2}", "ab"));
  EXPECT_TRUE(Accepts("root ::= item{0,2}\nitem ::= \"<\" root \">\"", "<<>><>"));
  EXPECT_FALSE(Accepts("root ::= item{0,2}\nitem ::= \"<\" root \">\"", "<><><>"));
}

TEST(GbnfTest, RulesMayBeLeftRecursive) {
  EXPECT_TRUE(Accepts("root ::= root \",\" n | n\nn ::= [0-9]", "1,2,3"));
  EXPECT_FALSE(Accepts("root ::= root \",\" n | n\nn ::= [0-9]", "1,,3"));
}

TEST(GbnfTest, AlternativesMayContinueOnTheNextLine) {
  EXPECT_TRUE(Accepts("root ::=\n  \"a\" |\n  (\"b\"\n | \"c\" )\n", "c"));
  EXPECT_TRUE(Accepts("root ::= | \"a\"", ""));
}

TEST(GbnfTest, EscapesAreCodePoints) {
  EXPECT_TRUE(Accepts(R"(root ::= "\x41\u00e9\U0001F600\"\\" [\]\-^] [^\n])", "Aé😀\"\\]x"));
  EXPECT_FALSE(Accepts(R"(root ::= [^\n])", "\n"));
}

TEST(GbnfTest, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(ErrorOf(""), "grammar: has no rule `root`");
  EXPECT_EQ(ErrorOf("root ::= item"), "grammar: line 1, column 10: the rule item is not defined");
  EXPECT_EQ(ErrorOf("root ::= \"a"), "grammar: line 1, column 12: missing \"");
  EXPECT_EQ(ErrorOf("root ::= (\"a\"\nb ::= \"c\""), "grammar: line 2, column 3: missing )");
  EXPECT_EQ(ErrorOf("root ::= [z-a]"), "grammar: line 1, column 14: the ends of a range are in the wrong order");
  EXPECT_EQ(ErrorOf("root ::= \"a\"\nroot ::= \"b\""), "grammar: line 2, column 1: the rule root is defined twice");
  EXPECT_EQ(ErrorOf("root = \"a\""), "grammar: line 1, column 6: expected ::= after the name of a rule");
  EXPECT_EQ(ErrorOf("root ::= \"a\" }"), "grammar: line 1, column 14: unexpected character");
  EXPECT_EQ(ErrorOf("root ::= \"\\d\""), "grammar: line 1, column 13: unknown escape");
  EXPECT_EQ(ErrorOf("root ::= a\na ::= b\nb ::= a"), "grammar: generates no text");
  EXPECT_EQ(ErrorOf("root ::= " + std::string(1000, '(')),
            "grammar: line 1, column 211: nested too deeply (limit 200)");
}

TEST(GbnfTest, SpecialTokensAreNamedOrNumbered) {
  const auto find = [](std::string_view text) -> std::optional<int32_t> {
    return text == "<think>" ? std::optional<int32_t>(7) : std::nullopt;
  };
  const auto trie = std::make_shared<const VocabTrie>(std::vector<std::string>{"a", "b"}, 10);
  GrammarAutomaton automaton(ParseGbnf("root ::= <think> !<[8]> \"a\"", find), trie);
  GrammarAutomaton::Position position;
  EXPECT_EQ(*automaton.AllowedTokens(position), TokenBitmask{1u << 7});
  EXPECT_FALSE(automaton.AdvanceToken(position, 0));
  EXPECT_TRUE(automaton.AdvanceToken(position, 7));
  EXPECT_EQ(*automaton.AllowedTokens(position), TokenBitmask{0x3FCu & ~(1u << 8)});
  EXPECT_TRUE(automaton.AdvanceToken(position, 9));
  EXPECT_TRUE(automaton.AdvanceToken(position, 0));
  EXPECT_TRUE(automaton.MayEnd(position));
  EXPECT_EQ(MessageOf<RequestError>([&] { ParseGbnf("root ::= <x>", find); }),
            "grammar: line 1, column 11: the model has no special token <x>");
}

}  // namespace
}  // namespace vllm
