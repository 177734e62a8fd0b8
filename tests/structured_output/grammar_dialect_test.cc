// Tests grammars in GBNF and Lark, lists of texts and regular expressions, with the reference matcher.
#include "engine/structured_output/dialects/grammar_dialect.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

using testing_support::SlowMatcher;

Grammar GrammarOf(std::string_view text, const GrammarVocabulary& vocabulary = {}) {
  GrammarBuilder builder;
  const SymbolId symbol = AddGrammarText(builder, text, vocabulary, {});
  return FinishGrammar(builder, symbol, "grammar");
}

bool Accepts(std::string_view grammar, std::string_view text) { return SlowMatcher(GrammarOf(grammar)).Accepts(text); }

std::string ErrorOf(std::string_view grammar, const GrammarVocabulary& vocabulary = {}) {
  try {
    GrammarOf(grammar, vocabulary);
    return "";
  } catch (const RequestError& error) {
    return error.what();
  }
}

void ExpectTexts(std::string_view grammar, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& rejected) {
  SlowMatcher matcher(GrammarOf(grammar));
  for (const std::string& text : accepted) EXPECT_TRUE(matcher.Accepts(text)) << text;
  for (const std::string& text : rejected) EXPECT_FALSE(matcher.Accepts(text)) << text;
}

// Returns whether the whole grammar is one terminal.
bool IsOneTerminal(const Grammar& grammar) {
  size_t num_symbols = 0;
  for (SymbolId i = 0; i < grammar.num_symbols(); ++i) num_symbols += 1;
  return num_symbols == 2;  // the start and the terminal
}

TEST(GbnfTest, RulesHaveGroupsAlternativesAndRepetitions) {
  ExpectTexts(R"~(
    # a comment
    root ::= "yes" | [a-c]+ (", " item){2,3}   # another
    item ::= . [^\n"]* | "\x41\u00e9\U0001F600\"\\\n"
  )~",
              {"yes", "ab, x, y", "c, 1, , z", "a, b, c, d", "a, b, \x41é😀\"\\\n"}, {"no", "ab, x", "a, b, \n\n", ""});
}

TEST(GbnfTest, ARuleContinuesAfterLineBreaks) {
  ExpectTexts("root ::= (\n \"a\"\n b\n) |\n \"c\"\nb ::= \"b\"\n", {"ab", "c"}, {"a", "abc"});
}

TEST(GbnfTest, BoundsOfRepetitionsAreExact) {
  ExpectTexts("root ::= \"a\"{2} \"b\"{,2} \"c\"{1,} \"d\"{0,1}", {"aac", "aabcc", "aabbccd"},
              {"ac", "aa", "aabbbc", "aacdd"});
}

TEST(GbnfTest, RulesMayBeRecursiveOnBothSides) {
  const char* arithmetic = R"~(
    root ::= (expr "=" ws term "\n")+
    expr ::= expr [-+*/] ws term | term
    term ::= ident | num | "(" ws expr ")" ws
    ident ::= [a-z] [a-z0-9_]* ws
    num ::= [0-9]+ ws
    ws ::= [ \t\n]*
  )~";
  ExpectTexts(arithmetic, {"42=42\n", "x=42\n", "x=y\n", "(a + 3) * 2 = x\n", "1 - (2 - (3 - x)) = 0\nx=1\n"},
              {"", "x=\n", "x=42", "(a=3\n", "1+=2\n"});
  ExpectTexts("root ::= \"(\" root \")\" root | \"\"", {"", "()", "(())()"}, {"(", ")("});
}

TEST(GbnfTest, JsonIsAccepted) {
  const char* json = R"~(
    root ::= object
    value ::= object | array | string | number | ("true" | "false" | "null") ws
    object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
    array ::= "[" ws (value ("," ws value)*)? "]" ws
    string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
    number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
    ws ::= | " " | "\n" [ \t]{0,20}
  )~";
  ExpectTexts(json, {"{}", R"({"a": [1, 2.5, -3e1], "b": {"c": null}})", "{\n  \"é\\u00e9\": true\n}"},
              {"", "[]", R"({"a"})", R"({"a": 01})", "{\"a\": \"\n\"}", R"({"a": tru})"});
}

TEST(GbnfTest, ChessMovesAreAccepted) {
  const char* chess = R"~(
    root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
    move ::= (pawn | nonpawn | castle) [+#]?
    nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
    pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
    castle ::= "O-O" "-O"?
  )~";
  ExpectTexts(chess, {"1. e4 e5\n2. Nf3 Nc6\n", "1. e4 e5\n2. O-O-O exd8=Q#\n"},
              {"1. e4 e5\n", "1. e4 e9\n2. a4 a5\n"});
  EXPECT_TRUE(IsOneTerminal(GrammarOf(chess)));
}

TEST(GbnfTest, MistakesAreReportedWithTheirPlace) {
  EXPECT_EQ(ErrorOf("root ::= a\n"), "grammar: the rule a is not defined at line 1, column 10");
  EXPECT_EQ(ErrorOf("root ::= \"a\nb ::= \"b\""), "grammar: missing \" at the end of the text at line 1, column 10");
  EXPECT_EQ(ErrorOf("a ::= \"a\"\n"), "grammar: has no rule root");
  EXPECT_EQ(ErrorOf("root ::= \"a\"\nroot ::= \"b\""), "grammar: the rule root is defined twice at line 2, column 1");
  EXPECT_EQ(ErrorOf("root ::= (\"a\""), "grammar: missing ) of the group at line 1, column 10");
  EXPECT_EQ(ErrorOf("root ::= \"é\" )"), "grammar: unexpected character at line 1, column 14");
  EXPECT_EQ(ErrorOf("root ::= [b-a]"), "grammar: the ends of a range are in the wrong order at line 1, column 14");
  EXPECT_EQ(ErrorOf("root ::= [\\d]"), "grammar: unknown escape at line 1, column 13");
  EXPECT_EQ(ErrorOf("root ::= \"a\"{3,2}"),
            "grammar: the bounds of a repetition are in the wrong order at line 1, column 17");
  EXPECT_EQ(ErrorOf("root ::= * \"a\""), "grammar: unexpected character at line 1, column 10");
  EXPECT_EQ(ErrorOf("root ::= root"), "grammar: allows no text");
  EXPECT_EQ(ErrorOf("root ::= !<[1]>"),
            "grammar: ! must be repeated with * or +: single tokens are not told apart in text at line 1, column 10");
  EXPECT_EQ(ErrorOf("root[lazy] ::= \"a\""), "grammar: options of a rule are not supported at line 1, column 5");
  EXPECT_EQ(ErrorOf("root ::= " + std::string(30'000, '(')),
            "grammar: nested too deeply (limit 250) at line 1, column 261");
}

// Token 0 is text, and tokens 1 to 3 are special. Token 3 ends the output.
GrammarVocabulary Vocabulary() {
  static const std::map<std::string, int32_t, std::less<>> names = {
      {"</think>", 0}, {"<|tool|>", 1}, {"<|eom|>", 2}, {"<|eos|>", 3}};
  GrammarVocabulary vocabulary;
  vocabulary.find = [](std::string_view text) -> std::optional<int32_t> {
    const auto it = names.find(text);
    if (it == names.end()) return std::nullopt;
    return it->second;
  };
  vocabulary.bytes = [](int32_t id) -> std::optional<std::string> {
    if (id > 3) return std::nullopt;
    return id == 0 ? "</think>" : "";
  };
  vocabulary.special_tokens = {{1, 2}};
  return vocabulary;
}

// Returns the ranges of special tokens in the grammar, in the order of its symbols.
std::vector<std::pair<int32_t, int32_t>> TokensIn(const Grammar& grammar) {
  std::vector<std::pair<int32_t, int32_t>> tokens;
  for (SymbolId i = 0; i < grammar.num_symbols(); ++i) {
    for (const TokenRange& range : grammar.symbol(i).tokens) tokens.emplace_back(range.first, range.last);
  }
  return tokens;
}

TEST(GbnfTest, TokensAreNamedByTextOrId) {
  using Ranges = std::vector<std::pair<int32_t, int32_t>>;
  EXPECT_EQ(TokensIn(GrammarOf("root ::= <|tool|> \"a\" <[2]>", Vocabulary())), (Ranges{{1, 1}, {2, 2}}));
  EXPECT_EQ(TokensIn(GrammarOf("root ::= !<|tool|>* <|eos|>", Vocabulary())), (Ranges{{2, 2}, {3, 3}}));
  EXPECT_EQ(ErrorOf("root ::= <|other|>", Vocabulary()),
            "grammar: the model has no token <|other|> at line 1, column 10");
  EXPECT_EQ(ErrorOf("root ::= <[4]>", Vocabulary()), "grammar: the model has no token 4 at line 1, column 10");
}

TEST(GbnfTest, ATokenThatIsTextStandsForItsBytes) {
  SlowMatcher matcher(GrammarOf("root ::= !</think>* </think> \"x\"", Vocabulary()));
  EXPECT_TRUE(matcher.Accepts("a</thin</think>x"));
  EXPECT_TRUE(matcher.Accepts("</think>x"));
  EXPECT_FALSE(matcher.Accepts("a</think></think>x"));
  EXPECT_FALSE(matcher.Accepts("x"));
}

TEST(GbnfTest, HostileGrammarsAreBounded) {
  EXPECT_TRUE(Accepts("root ::= (\"a\"*)*", "aaa"));
  EXPECT_TRUE(Accepts("root ::= a\na ::= b | \"x\"\nb ::= a", "x"));
  EXPECT_TRUE(Accepts("root ::= root | \"a\" root | \"\"", "aa"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20'000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\" | \"y\"\n";
  }
  chain += "r20000 ::= \"z\"\n";
  EXPECT_TRUE(GrammarOf(chain).symbol(0).productive);
  std::string stars = "root ::= \"a\"" + std::string(100'000, '*');
  EXPECT_EQ(ErrorOf(stars), "grammar: too many quantifiers at line 1, column 264");
}

TEST(LarkTest, RulesUseTerminals) {
  ExpectTexts(R"~(
    // a comment
    start: greeting{1,2} NAME ("," NAME)* [END]   # another
    greeting: "Hi "i | "He" "l"~2 "o "
    NAME: LETTER+ & ~"Bob"
    LETTER: "a".."z" | /[A-Z]/
    END: "!" | /\?+/
  )~",
              {"hI Ann", "Hello Hi Ann,Ben!", "Hi Bobby??"}, {"Hi Bob", "Hi ", "Ann", "Hello Ann,", "Hi Hi Hi Ann"});
}

TEST(LarkTest, PatternsHaveFlags) {
  ExpectTexts("start: /a.b/is /c\\/d/ /e # f/x", {"A\nBc/de"}, {"axbc/de # f", "A\nBc/dE"});
}

TEST(LarkTest, IgnoredTextIsBetweenTerminalsAndAfterThem) {
  const std::string grammar = "%import common.WS\n%ignore WS\n%ignore /#[^\\n]*/\nstart: \"a\" B+\nB: \"b\" \"c\"\n";
  ExpectTexts(grammar, {"abc", "a bc # x\n\nbc ", "abcbc"}, {" abc", "ab c", "a"});
  ExpectTexts("%llguidance {\"allow_initial_skip\": true}\n" + grammar, {" abc "}, {"ab c"});
  ExpectTexts("%llguidance {\"skip_repetition\": \"once\"}\n%ignore /[ ]{1,2}/\nstart: \"a\" \"b\"", {"ab", "a  b "},
              {"a   b"});
}

TEST(LarkTest, LazyRulesEndAtTheFirstMatch) {
  const char* tools = R"~(
    start: ( f_foo | f_bar )* f_end
    f_end: TEXT
    TEXT: /(.|\n)*/
    f_foo_hd[lazy]: TEXT "<function"
    f_foo: f_foo_hd "=foo>" %json {"type": "object", "properties": {}, "additionalProperties": false} "</function>"
    f_bar_hd[lazy]: TEXT "<function"
    f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"
  )~";
  ExpectTexts(tools, {"", "text", "a<function=foo>{}</function>b<function=bar>12</function>"}, {});
  ExpectTexts("start: a \"!\"\na[suffix=\"<end>\"]: /.*/", {"foo<end>!", "<end>!"}, {"foo<end>bar<end>!", "foo!"});
  ExpectTexts("start: a \"<end>\"\na[capture, stop=\"<end>\"]: /.*/", {"foo<end>"}, {"foo<end>bar<end>"});
  ExpectTexts("start: a\na[lazy]: /[0-9]+/", {"1"}, {"12", ""});
}

TEST(LarkTest, RulesMayBeRecursive) {
  ExpectTexts(
      "start: expr\nexpr: expr \"+\" term | term\nterm: term \"*\" factor | factor\n"
      "factor: \"(\" expr \")\" | NUMBER\nNUMBER: /[0-9]+/",
      {"1", "1+2*3", "(1+2)*(3)"}, {"", "1+", "(1"});
}

TEST(LarkTest, SchemasAndSubstringsAreInline) {
  ExpectTexts("start: %json {\"enum\": [1, \"a}\"]} | A\nA: %regex {\"substring_chunks\": [\"abc\", \"de\", \"fg\"]}",
              {"1", "\"a}\"", "", "abc", "de", "abcde", "defg", "abcdefg"}, {"2", "ab", "cde", "abcfg"});
}

TEST(LarkTest, TerminalsOfTheLibraryAreImported) {
  ExpectTexts(
      "%import common (INT, ESCAPED_STRING)\n%import common.CNAME -> ID\nstart: INT ESCAPED_STRING ID C\n"
      "%import common.C_COMMENT -> C",
      {"12\"a\\\"b\"x_1/* a **/"}, {"12\"a\"b\"x/**/", "1\"\"x/* */ */"});
}

TEST(LarkTest, SpecialTokensAreNamedInRules) {
  using Ranges = std::vector<std::pair<int32_t, int32_t>>;
  EXPECT_EQ(TokensIn(GrammarOf("start: <|tool|> \"a\" <[2-3]>", Vocabulary())), (Ranges{{1, 1}, {2, 3}}));
  EXPECT_EQ(TokensIn(GrammarOf("start: <[*]>* \"a\"", Vocabulary())), (Ranges{{1, 2}}));
  EXPECT_EQ(TokensIn(GrammarOf("start: <[^1,3]>+ <|tool|>", Vocabulary())), (Ranges{{2, 2}, {1, 1}}));
  EXPECT_EQ(ErrorOf("start: A\nA: <|tool|>", Vocabulary()),
            "grammar: a special token cannot be used in a terminal at line 2, column 4");
}

TEST(LarkTest, MistakesAndMissingFeaturesAreReportedWithTheirPlace) {
  EXPECT_EQ(ErrorOf("start: A\n"), "grammar: the name A is not defined at line 1, column 8");
  EXPECT_EQ(ErrorOf("start: a\n"), "grammar: the name a is not defined at line 1, column 8");
  EXPECT_EQ(ErrorOf("a: \"a\""), "grammar: has no rule start");
  EXPECT_EQ(ErrorOf(""), "grammar: has no rule start");
  EXPECT_EQ(ErrorOf("start: A\nA: B\nB: \"b\" A"),
            "grammar: the terminal A uses itself, which only rules may at line 2, column 1");
  EXPECT_EQ(ErrorOf("start: A\nA: start"), "grammar: the rule start cannot be used in a terminal at line 2, column 4");
  EXPECT_EQ(ErrorOf("start: /(/"), "grammar: the pattern: missing ) at character 2, which begins at line 1, column 8");
  EXPECT_EQ(ErrorOf("start[max_tokens=5]: /a/"), "grammar: max_tokens is not supported at line 1, column 7");
  EXPECT_EQ(ErrorOf("start[temperature=0.5]: /a/"), "grammar: temperature is not supported at line 1, column 7");
  EXPECT_EQ(ErrorOf("start: A\nA.2: \"a\""), "grammar: priorities are not supported at line 2, column 2");
  EXPECT_EQ(ErrorOf("start: a{\"x\"}\na{x}: x"), "grammar: missing number at line 1, column 10");
  EXPECT_EQ(ErrorOf("start: @other"), "grammar: other grammars cannot be named at line 1, column 8");
  EXPECT_EQ(ErrorOf("%import other.X\nstart: X"), "grammar: only common can be imported at line 1, column 9");
  EXPECT_EQ(ErrorOf("%declare X\nstart: X"), "grammar: %declare is not supported at line 1, column 1");
  EXPECT_EQ(ErrorOf("start: ~\"a\""), "grammar: & and ~ can only be used in terminals at line 1, column 8");
  EXPECT_EQ(ErrorOf("start: \"a\"\nstart: \"b\""), "grammar: the name start is defined twice at line 2, column 1");
}

TEST(TextChoiceTest, OneOfTheTextsIsAccepted) {
  GrammarBuilder builder;
  const std::vector<std::string> texts = {"yes", "yesterday", "no"};
  SlowMatcher matcher(FinishGrammar(builder, AddTextChoice(builder, texts), "choice"));
  EXPECT_TRUE(matcher.Accepts("yes"));
  EXPECT_TRUE(matcher.Accepts("yesterday"));
  EXPECT_FALSE(matcher.Accepts("yester"));
  EXPECT_FALSE(matcher.Accepts(""));
}

TEST(WholePatternTest, TheWholeTextMatches) {
  GrammarBuilder builder;
  SlowMatcher matcher(FinishGrammar(builder, AddWholePattern(builder, "[a-c]+|\\d{2}"), "regex"));
  EXPECT_TRUE(matcher.Accepts("abc"));
  EXPECT_TRUE(matcher.Accepts("12"));
  EXPECT_FALSE(matcher.Accepts("abc1"));
}

}  // namespace
}  // namespace vllm
