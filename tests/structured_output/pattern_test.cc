// Tests patterns against RE2 and against known results of ECMA-262.
#include "engine/structured_output/patterns/pattern.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <random>
#include <string>
#include <vector>

#include "engine/config/errors.h"

namespace vllm {
namespace {

bool Matches(const std::string& pattern, const std::string& text, PatternSyntax syntax, PatternMatch match) {
  RegexStore store;
  return store.Matches(ParsePattern(store, pattern, syntax, match, TextSpelling::kUtf8), text);
}

bool Searches(const std::string& pattern, const std::string& text) {
  return Matches(pattern, text, PatternSyntax::kEcma, PatternMatch::kSearch);
}

std::string ErrorOf(const std::string& pattern, PatternSyntax syntax = PatternSyntax::kEcma) {
  try {
    RegexStore store;
    ParsePattern(store, pattern, syntax, PatternMatch::kSearch, TextSpelling::kUtf8);
    return "";
  } catch (const RequestError& error) {
    return error.what();
  }
}

// Without the flag i: RE2 20220601 does not find B in ([a-c]|(?i)B).
std::string RandomPattern(std::mt19937_64& random, int depth) {
  const auto pick = [&](uint64_t n) { return random() % n; };
  static const std::vector<std::string> kAtoms = {
      "a",       "b",           "é",    ".",        "[ab]", "[^a]", "[a-cé-ë]", "\\d", "\\w", "\\s", "\\n",
      "\\x{e9}", "[[:alpha:]]", "\\pL", "\\Qa.\\E", "^",    "$",    "\\A",      "\\z", "",    "\\W", "(?s:.)"};
  if (depth == 0 || pick(5) == 0) return kAtoms[pick(kAtoms.size())];
  const std::string inner = RandomPattern(random, depth - 1);
  switch (pick(6)) {
    case 0:
    case 1:
      return inner + RandomPattern(random, depth - 1);
    case 2:
      return "(" + inner + "|" + RandomPattern(random, depth - 1) + ")";
    case 3:
      return "(?:" + inner + ")*";
    case 4:
      return "(" + inner + ")" + (pick(2) == 0 ? "?" : "+?");
    default:
      return "(?:" + inner + "){" + std::to_string(pick(3)) + (pick(2) == 0 ? ",}" : ",3}");
  }
}

// Random patterns match exactly the random texts that RE2 matches, as a whole and in part.
TEST(PatternTest, RandomPatternsAgreeWithRE2) {
  std::mt19937_64 random(1);
  static const std::vector<std::string> kPieces = {"a", "b", "B", "é", "É", "1", " ", "\n", ".", "c", "日"};
  size_t num_patterns = 0;
  size_t num_matches = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string pattern = RandomPattern(random, 4);
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 oracle(pattern, options);
    RegexStore store;
    RegexId whole = 0;
    RegexId part = 0;
    try {
      whole = ParsePattern(store, pattern, PatternSyntax::kRe2, PatternMatch::kWhole, TextSpelling::kUtf8);
      part = ParsePattern(store, pattern, PatternSyntax::kRe2, PatternMatch::kSearch, TextSpelling::kUtf8);
    } catch (const RequestError& error) {
      const std::string why = error.what();
      ASSERT_TRUE(why.starts_with("^ and $ are not supported inside") || !oracle.ok()) << pattern << ": " << why;
      continue;
    }
    ASSERT_TRUE(oracle.ok()) << pattern << ": " << oracle.error();
    ++num_patterns;
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (uint64_t n = random() % 6; n > 0; --n) text += kPieces[random() % kPieces.size()];
      ASSERT_EQ(store.Matches(whole, text), RE2::FullMatch(text, oracle)) << pattern << "\n" << text;
      ASSERT_EQ(store.Matches(part, text), RE2::PartialMatch(text, oracle)) << pattern << "\n" << text;
      num_matches += store.Matches(whole, text) ? 1 : 0;
    }
  }
  EXPECT_GT(num_patterns, 2500u);
  EXPECT_GT(num_matches, 2500u);
}

// Expects that RE2 agrees.
bool MatchesInRE2(const std::string& pattern, const std::string& text) {
  const bool matches = Matches(pattern, text, PatternSyntax::kRe2, PatternMatch::kWhole);
  EXPECT_EQ(matches, RE2::FullMatch(text, RE2(pattern))) << pattern;
  return matches;
}

TEST(PatternTest, AQuantifierAfterAQuotationRepeatsItsLastCharacter) {
  EXPECT_TRUE(MatchesInRE2("\\Qa(\\E*", "a(("));
  EXPECT_TRUE(MatchesInRE2("\\Qa(\\E*", "a"));
  EXPECT_FALSE(MatchesInRE2("\\Qa(\\E*", ""));
  EXPECT_TRUE(MatchesInRE2("\\Qab\\E{2}c", "abbc"));
  EXPECT_TRUE(MatchesInRE2("\\Qa|*", "a|*"));
  EXPECT_EQ(ErrorOf("a\\Q\\E*", PatternSyntax::kRe2), "nothing to repeat at character 6");
  EXPECT_EQ(ErrorOf("\\Qa\\E", PatternSyntax::kRust), "unknown escape at character 3");
}

TEST(PatternTest, CountsWithLeadingZerosAreTextInRE2) {
  EXPECT_TRUE(MatchesInRE2("a{01}", "a{01}"));
  EXPECT_TRUE(MatchesInRE2("a{1,02}", "a{1,02}"));
  EXPECT_FALSE(MatchesInRE2("a{00}", ""));
  EXPECT_TRUE(MatchesInRE2("a{0}", ""));
  EXPECT_TRUE(Searches("^a{02}$", "aa"));
}

TEST(PatternTest, OctalNumbersOfRE2BeginWithZero) {
  EXPECT_TRUE(MatchesInRE2("\\0618[\\07]", "18\a"));
  EXPECT_TRUE(MatchesInRE2("\\08", std::string{'\0', '8'}));
  EXPECT_EQ(ErrorOf("\\0", PatternSyntax::kRust), "unknown escape at character 3");
  EXPECT_EQ(ErrorOf("\\00"), "invalid escape at character 3");
  EXPECT_EQ(ErrorOf("\\0"), "");
}

TEST(PatternTest, PatternsOfSchemasSearch) {
  EXPECT_TRUE(Searches("a+b", "xxaab!"));
  EXPECT_FALSE(Searches("^a+b$", "xxaab"));
  EXPECT_TRUE(Searches("^a|b$", "a!"));
  EXPECT_TRUE(Searches("^a|b$", "!b"));
  EXPECT_FALSE(Searches("^a|b$", "!a"));
  EXPECT_TRUE(Searches("^$", ""));
  EXPECT_FALSE(Searches("^$", "x"));
  EXPECT_TRUE(Searches("(^|,)a(,|$)", "b,a"));
  EXPECT_FALSE(Searches("(^|,)a(,|$)", "ba"));
  EXPECT_TRUE(Searches("^\\d{3}-\\d{4}$", "555-1234"));
  EXPECT_FALSE(Searches("^\\d$", "\xE0\xA7\xAA"));  // a Bengali digit
  EXPECT_TRUE(Searches("^\\s$", "\xE2\x80\xA9"));   // a paragraph separator
  EXPECT_TRUE(Searches("^\\cC$", "\x03"));
  EXPECT_TRUE(Searches("^\\p{Letter}+$", "日é"));
  EXPECT_TRUE(Searches("^\\ud83d\\ude00$", "😀"));
  EXPECT_TRUE(Searches("^[\\w\\-_./]+$", "a-b/c.d"));
  EXPECT_TRUE(Searches("^[]$|^[^]$", "\n"));
  EXPECT_TRUE(Searches("^{a}$", "{a}"));
  EXPECT_TRUE(Searches("^(?<year>\\d{4})$", "2026"));
}

TEST(PatternTest, ClassesOfRustAreThoseOfUnicode) {
  EXPECT_TRUE(Matches("\\d\\w\\s", "\u09ea\u00e9\u3000", PatternSyntax::kRust, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("\\W", "\u00e9", PatternSyntax::kRust, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("\\d", "\u09ea", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_TRUE(Matches("[[]", "[", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_EQ(ErrorOf("[a-z&&[^x]]", PatternSyntax::kRust),
            "nested classes and operators of classes are not supported at character 5");
}

TEST(PatternTest, TheCaseIsIgnoredUnderTheFlag) {
  EXPECT_TRUE(Matches("(?i)stra\u00dfe", "STRA\u00dfE", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_TRUE(Matches("a(?i:B)c", "abc", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("a(?i:B)c", "abC", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("(?i)\\W", "s", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("(?i)\\P{Lu}", "a", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_TRUE(Matches("(?i)\\W", "-", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_TRUE(Matches("(?i)[^k]", "x", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("(?i)[^k]", "\u212a", PatternSyntax::kRe2, PatternMatch::kWhole));  // the Kelvin sign
  EXPECT_TRUE(Matches("(?i)[\u00e0-\u00e9]", "\u00c9", PatternSyntax::kRe2, PatternMatch::kWhole));
}

TEST(PatternTest, LookaheadAtTheTopLevelIsExact) {
  const std::string password = "^(?=.*[A-Z])(?=.*\\d)(?!.*password).{8,}$";
  EXPECT_TRUE(Searches(password, "Secret42"));
  EXPECT_FALSE(Searches(password, "secret42"));
  EXPECT_FALSE(Searches(password, "Secret4"));
  EXPECT_FALSE(Searches(password, "Apassword42"));
  EXPECT_TRUE(Searches("^(?!a)", "b"));
  EXPECT_TRUE(Searches("^(?!a)", ""));
  EXPECT_FALSE(Searches("^(?!a)", "ab"));
  EXPECT_TRUE(Searches("x(?=y)", "xy"));
  EXPECT_FALSE(Searches("x(?=y)", "xz"));
  EXPECT_TRUE(Searches("x(?!y)", "xyxz"));
  EXPECT_EQ(ErrorOf("((?!a).)*"), "look-ahead is supported only at the top level of a pattern");
}

// In a JSON string, most code points may be written in several ways.
TEST(PatternTest, PatternsMatchTheDecodedJsonString) {
  RegexStore store;
  const RegexId id =
      ParsePattern(store, "^[^a?]\\n\"$", PatternSyntax::kEcma, PatternMatch::kSearch, TextSpelling::kJsonString);
  for (const char* text : {R"(b\n\")", R"(\u002D\u000A\u0022)", R"(é\n\")", R"(\ud83d\ude00\n\")", R"(\/\n\")"}) {
    EXPECT_TRUE(store.Matches(id, text)) << text;
  }
  for (const char* text :
       {R"(a\n\")", R"(?\n\")", R"(\u003f\n\")", R"(\u0062\n\")", "b\n\\\"", R"(b\n")", R"(\ud83d\n\")", R"(\x\n\")"}) {
    EXPECT_FALSE(store.Matches(id, text)) << text;
  }
}

TEST(PatternTest, WhatIsNotSupportedIsNamed) {
  EXPECT_EQ(ErrorOf("(a)\\1"), "backreferences are not supported at character 5");
  EXPECT_EQ(ErrorOf("(?<=a)b"), "look-behind is not supported at character 3");
  EXPECT_EQ(ErrorOf("\\bword"), "word boundaries are not supported at character 2");
  EXPECT_EQ(ErrorOf("é("), "missing ) at character 3");
  EXPECT_EQ(ErrorOf("a)"), "unmatched ) at character 2");
  EXPECT_EQ(ErrorOf("a{3,2}"), "the bounds of a repetition are in the wrong order at character 7");
  EXPECT_EQ(ErrorOf("*a"), "nothing to repeat at character 1");
  EXPECT_EQ(ErrorOf("[b-a]"), "the ends of a range are in the wrong order at character 5");
  EXPECT_EQ(ErrorOf("\\p{Klingon}"), "unknown Unicode property at character 12");
  EXPECT_EQ(ErrorOf(std::string("a\0", 2)), "contains a NUL byte");
  EXPECT_EQ(ErrorOf("a{9999999}"), "a repetition is too large (limit 1048576) at character 11");
  EXPECT_EQ(ErrorOf("a{1,99999999999}"), "a repetition is too large (limit 1048576) at character 17");
  EXPECT_EQ(ErrorOf("(^a){3}"), "^ and $ are not supported inside a counted repetition");
}

// The flag i at the start. RE2 20220601 is wrong where it is set in the middle.
TEST(PatternTest, NegatedClassesUnderTheFlagAgreeWithRE2) {
  for (const char* pattern : {"(?i)\\W", "(?i)[\\W]", "(?i)[^\\W]", "(?i)\\w", "(?i)\\P{Lu}", "(?i)[^\\P{Lu}]",
                              "(?i)[[:^lower:]]", "(?i)[[:upper:]]", "(?i)\\D", "(?i)[^k]", "(?i)[\\Wk]"}) {
    RegexStore store;
    const RegexId id = ParsePattern(store, pattern, PatternSyntax::kRe2, PatternMatch::kWhole, TextSpelling::kUtf8);
    const RE2 oracle(pattern);
    ASSERT_TRUE(oracle.ok()) << oracle.error();
    for (const char* text : {"s", "S", "k", "K", "\u017f", "\u212a", "a", "A", "é", "É", "1", "_", "-", "日"}) {
      EXPECT_EQ(store.Matches(id, text), RE2::FullMatch(text, oracle)) << pattern << " " << text;
    }
  }
}

TEST(PatternTest, LongChainsOfQuantifiersAreLimited) {
  const std::string why = "too many quantifiers in a row (limit 250) at character 253";
  EXPECT_EQ(ErrorOf("a" + std::string(100'000, '*'), PatternSyntax::kRe2), why);
  std::string counted = "a";
  for (int i = 0; i < 30'000; ++i) counted += "{2}";
  EXPECT_EQ(ErrorOf(counted), "nothing to repeat at character 5");
  EXPECT_EQ(ErrorOf("a" + std::string(250, '*'), PatternSyntax::kRe2), "");
}

// One operand for each pair of groups would be two thousand million.
TEST(PatternTest, SequencesOfAlternativesTakeLinearSpace) {
  std::string pattern;
  for (int i = 0; i < 30'000; ++i) pattern += "(a|)";
  RegexStore store;
  ParsePattern(store, pattern, PatternSyntax::kEcma, PatternMatch::kWhole, TextSpelling::kUtf8);
  EXPECT_LT(store.size(), 100'000u);
}

TEST(PatternTest, ManyLookaheadsAreLimited) {
  std::string pattern;
  for (int i = 0; i < 1001; ++i) pattern += "((?=a)a|)";
  EXPECT_EQ(ErrorOf(pattern), "too many look-aheads (limit 1000) at character 9005");
  EXPECT_EQ(ErrorOf(pattern.substr(9)), "");
}

TEST(PatternTest, LargeClassesAreLimited) {
  std::string pattern;
  for (int i = 0; i < 30'000; ++i) pattern += "\\pL";
  const std::string why = "too many ranges of characters (limit 262144) at character";
  EXPECT_TRUE(ErrorOf(pattern, PatternSyntax::kRe2).starts_with(why)) << ErrorOf(pattern, PatternSyntax::kRe2);
  EXPECT_TRUE(ErrorOf("[" + pattern + "]", PatternSyntax::kRe2).starts_with(why));
}

TEST(PatternTest, AMinusNextToAClassStandsForItself) {
  EXPECT_TRUE(Searches("^[\\w-.]+$", "a-b.c"));
  EXPECT_FALSE(Searches("^[\\w-.]+$", "a,b"));
  EXPECT_TRUE(Searches("^[+-\\d]+$", "+-1"));
  EXPECT_FALSE(Searches("^[+-\\d]+$", ","));
  EXPECT_EQ(ErrorOf("[\\w-.]", PatternSyntax::kRe2), "a class cannot be the end of a range at character 6");
}

TEST(PatternTest, SpaceInClassesIsIgnoredUnderTheFlagX) {
  EXPECT_TRUE(Matches("(?x) [ a b ] # one letter", "b", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_FALSE(Matches("(?x) [ a b ]", " ", PatternSyntax::kRe2, PatternMatch::kWhole));
  EXPECT_TRUE(Matches("(?x) [ \\  ]", " ", PatternSyntax::kRe2, PatternMatch::kWhole));
}

// Such a pattern needs no search for a text that it matches.
TEST(PatternTest, RepetitionsBetweenAnchorsStaySimple) {
  RegexStore store;
  const auto parse = [&](const char* pattern, PatternMatch match) {
    return ParsePattern(store, pattern, PatternSyntax::kEcma, match, TextSpelling::kUtf8);
  };
  const RegexId letters = store.Star(store.Bytes(ByteSet::Range('a', 'z')));
  EXPECT_EQ(parse("^[a-z]*$", PatternMatch::kSearch), letters);
  EXPECT_EQ(parse("[a-z]*", PatternMatch::kWhole), letters);
  EXPECT_EQ(parse("^([a-z]*)$", PatternMatch::kWhole), letters);
}

// None of these takes long or recurses deeply; some exceed a limit.
TEST(PatternTest, HostilePatternsAreBounded) {
  const std::string many(100'000, '(');
  EXPECT_EQ(ErrorOf(many), "nested too deeply (limit 250) at character 252");
  std::string counts = "a";
  std::string classes;
  for (int i = 0; i < 30'000; ++i) {
    counts += "{2}";
    classes += "\\p{L}";
  }
  EXPECT_EQ(ErrorOf(counts), "nothing to repeat at character 5");
  EXPECT_TRUE(ErrorOf(classes).starts_with("too many ranges of characters (limit 262144) at character"));
  std::string optional;
  for (int i = 0; i < 5000; ++i) optional += "a?";
  for (const std::string& pattern :
       {std::string("(a|aa)*b"), std::string("(a{1,1000}){1,1000}"), std::string("(.*a){20}"), optional,
        std::string("[\\u0000-\\uFFFF]{1,65535}"), std::string("(a?){50000}a{50000}"), std::string("(((a*)*)*)*")}) {
    RegexStore store;
    try {
      const RegexId id = ParsePattern(store, pattern, PatternSyntax::kEcma, PatternMatch::kSearch, TextSpelling::kUtf8);
      store.Matches(id, std::string(200, 'a'));
    } catch (const GrammarLimitError& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("the grammar needs too many")) << error.what();
    }
  }
}

}  // namespace
}  // namespace vllm
