// Checks that the hand-written scanners and Oniguruma find the same matches, and tests the limits of OnigPattern.
#include "tokenizer/patterns/word_scanner.h"

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/patterns/onig_pattern.h"

namespace vllm::tokenizer {
namespace {

std::vector<Match> AllMatches(const TextPattern& pattern, std::string_view text) {
  std::vector<Match> matches;
  for (size_t position = 0; position < text.size();) position = pattern.FindMatches(text, position, matches);
  return matches;
}

std::string Describe(std::string_view text, const TextPattern& pattern) {
  const std::vector<Match> matches = AllMatches(pattern, text);
  std::string description;
  for (const Match& match : matches) {
    description += match.is_match ? 'm' : '-';
    description += std::to_string(match.begin);
    description += "..";
    description += std::to_string(match.end);
    description += ' ';
  }
  return description;
}

TEST(WordScannerTest, AgreesWithOnigurumaOnRandomTexts) {
  for (const WordScanner& scanner : AllWordScanners()) {
    const std::string regex(scanner.regex);
    ASSERT_EQ(FindWordScanner(regex), &scanner) << regex;
    const ScannerPattern fast(scanner);
    const OnigPattern slow(regex);
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
      const std::string text = RandomText(random, 1 + random() % 24);
      ASSERT_EQ(Describe(text, fast), Describe(text, slow)) << testing::PrintToString(text) << " " << regex;
    }
  }
}

TEST(WordScannerTest, AgreesWithOnigurumaOnRealTexts) {
  for (const char* name : {"frankenstein.txt", "wagahaiwa_nekodearu.txt"}) {
    const std::string path = RealPath("corpora/") + name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "reference data not found: " << path;
    const std::string text = ReadTestFile(path).substr(0, 90000);
    const std::string valid = ReplaceInvalidUtf8(text);
    for (const WordScanner& scanner : AllWordScanners()) {
      EXPECT_EQ(Describe(valid, ScannerPattern(scanner)), Describe(valid, OnigPattern(std::string(scanner.regex))));
    }
  }
}

TEST(WordScannerTest, AMegabyteOfRepeatedCharactersDoesNotTakeQuadraticTime) {
  for (const WordScanner& scanner : AllWordScanners()) {
    const ScannerPattern pattern(scanner);
    for (const char* unit : {"a", "A",
                             "\xE4\xB8\xAD"
                             "A",
                             "Aa", "7", " ", "\n", ".", "'", "\xE4\xB8\xAD", "\xE3\x80\x80", " \n", "\xCC\x81"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += unit;
      const double start = CpuSeconds();
      AllMatches(pattern, text + "x");
      // A quadratic scan of a megabyte would take minutes.
      EXPECT_LT(CpuSeconds() - start, 5.0) << scanner.regex << unit;
    }
  }
}

TEST(OnigPatternTest, PiecesCoverTheTextIfBacktrackingExceedsTheLimit) {
  const OnigPattern pattern("(a|aa)+$");
  const std::string text = "b " + std::string(100, 'a') + "b aaaa";
  const double start = CpuSeconds();
  const std::vector<Match> matches = AllMatches(pattern, text);
  EXPECT_LT(CpuSeconds() - start, 20.0);
  ASSERT_FALSE(matches.empty());
  size_t covered = 0;
  for (const Match& match : matches) {
    EXPECT_EQ(match.begin, covered);
    covered = match.end;
  }
  EXPECT_EQ(covered, text.size());
  EXPECT_TRUE(matches.back().is_match);
  EXPECT_EQ(matches.back().end - matches.back().begin, 4u);
}

TEST(OnigPatternTest, InvalidAndTooLongExpressionsAreRejected) {
  EXPECT_THROW(OnigPattern("(a"), TokenizerError);
  EXPECT_THROW(OnigPattern("[z-a]"), TokenizerError);
  EXPECT_THROW(OnigPattern(std::string(100000, 'a')), TokenizerError);
}

TEST(OnigPatternTest, ManyNestedGroupsAreRejectedOrCompiled) {
  const std::string nested = std::string(30000, '(') + "a" + std::string(30000, ')');
  try {
    const OnigPattern pattern(nested);
  } catch (const TokenizerError&) {
  }
}

}  // namespace
}  // namespace vllm::tokenizer
