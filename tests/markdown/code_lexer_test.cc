// Tests the tokens of code, written as the text of each token after a letter for its kind.
#include "app/markdown/code_lexer.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

std::string Lex(const std::string& language, std::string_view line, CodeState& state) {
  constexpr std::string_view kLetters = "pcsnkar";
  std::string text;
  for (const CodeToken& token : LexCodeLine(FindCodeLanguage(language), line, state)) {
    text += kLetters[static_cast<size_t>(token.kind)];
    text += "{" + std::string(line.substr(token.begin, token.end - token.begin)) + "}";
  }
  return text;
}

std::string Lex(const std::string& language, std::string_view line) {
  CodeState state = 0;
  return Lex(language, line, state);
}

TEST(CodeLexerTest, KeywordsNumbersStringsAndCommentsAreFound) {
  EXPECT_EQ(Lex("c++", "int x1 = 0x1F; // \"c\""), "k{int}p{ x1 = }n{0x1F}p{; }c{// \"c\"}");
  EXPECT_EQ(Lex("python", "return 'a\\'b' + 1.5 # x"), "k{return}p{ }s{'a\\'b'}p{ + }n{1.5}p{ }c{# x}");
  EXPECT_EQ(Lex("python", "f'a' # b"), "p{f}s{'a'}p{ }c{# b}");
  EXPECT_EQ(Lex("sql", "SELECT a FROM b -- c"), "k{SELECT}p{ a }k{FROM}p{ b }c{-- c}");
  EXPECT_EQ(Lex("bash", "echo $# a#b \"$x\" # c"), "k{echo}p{ $# a#b }s{\"$x\"}p{ }c{# c}");
  EXPECT_EQ(Lex("js", "x = 'http://a' + b"), "p{x = }s{'http://a'}p{ + b}");
  EXPECT_EQ(Lex("c", "n = 1'000;"), "p{n = }n{1}p{'}n{000}p{;}");
}

TEST(CodeLexerTest, CommentsAndStringsContinueOnTheNextLine) {
  CodeState state = 0;
  EXPECT_EQ(Lex("c", "a /* b", state), "p{a }c{/* b}");
  EXPECT_EQ(Lex("c", "c */ d", state), "c{c */}p{ d}");
  EXPECT_EQ(Lex("python", "x = \"\"\"a", state), "p{x = }s{\"\"\"a}");
  EXPECT_EQ(Lex("python", "# no comment", state), "s{# no comment}");
  EXPECT_EQ(Lex("python", "b\"\"\" # c", state), "s{b\"\"\"}p{ }c{# c}");
  EXPECT_EQ(Lex("python", "\"unclosed", state), "s{\"unclosed}");
  EXPECT_EQ(Lex("python", "x", state), "p{x}");
}

TEST(CodeLexerTest, LinesOfDiffsAreAddedOrRemoved) {
  EXPECT_EQ(Lex("diff", "+new") + Lex("diff", "-old") + Lex("diff", " same"), "a{+new}r{-old}p{ same}");
}

TEST(CodeLexerTest, InfoStringsNameALanguageByTheirFirstWord) {
  EXPECT_NE(FindCodeLanguage("c++ {.x}"), nullptr);
  EXPECT_EQ(FindCodeLanguage(" Python"), FindCodeLanguage("py"));
  EXPECT_EQ(FindCodeLanguage("ts{1,2}"), FindCodeLanguage("typescript"));
  EXPECT_EQ(FindCodeLanguage(""), nullptr);
  EXPECT_EQ(FindCodeLanguage("\x1b[31m"), nullptr);
  EXPECT_EQ(FindCodeLanguage(std::string(10000, 'x')), nullptr);
}

TEST(CodeLexerTest, CodeOfAnUnknownLanguageIsPlain) { EXPECT_EQ(Lex("unknown", "int x;"), "p{int x;}"); }

}  // namespace
}  // namespace vllm::app
