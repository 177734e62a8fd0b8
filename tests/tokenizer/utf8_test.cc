#include "tokenizer/unicode/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace vllm::tokenizer {
namespace {

TEST(Utf8Test, EveryScalarValueSurvivesEncodingAndDecoding) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendCodePoint(c, text);
    const Utf8Step step = DecodeUtf8(text, 0);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kValid);
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(CodePointAt(text, 0).value, c);
    ASSERT_EQ(CountCodePoints(text), 1u);
    for (size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(IncompleteUtf8Tail(text.substr(0, cut)), cut);
  }
}

TEST(Utf8Test, EachMaximalSubpartOfIllFormedBytesIsReplaced) {
  // The examples in the Unicode Standard, tables 3-8 to 3-11.
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Utf8Test, RepairedBytesAreValidAndValidTextIsUnchanged) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (size_t i = random() % 12; i > 0; --i) {
      static const unsigned char kBytes[] = {0x41, 0x7F, 0x80, 0xBF, 0xC0, 0xC2, 0xE0,
                                             0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0x9F};
      bytes += static_cast<char>(kBytes[random() % sizeof kBytes]);
    }
    const std::string repaired = ReplaceInvalidUtf8(bytes);
    ASSERT_TRUE(IsValidUtf8(repaired));
    ASSERT_EQ(IsValidUtf8(bytes), repaired == bytes);
    ASSERT_EQ(ReplaceInvalidUtf8(repaired), repaired);
  }
}

TEST(Utf8Test, OnlyATailThatMoreBytesCouldCompleteIsIncomplete) {
  EXPECT_EQ(IncompleteUtf8Tail(""), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("abc"), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("a\x80"), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("\xE0\x80"), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("a\xE4\xB8"), 2u);
  EXPECT_EQ(IncompleteUtf8Tail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(IncompleteUtf8Tail("\xE4\xB8\xAD"), 0u);
}

TEST(Utf8Test, PreviousCodePointReturnsTheStartOfThePrecedingCharacter) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";
  EXPECT_EQ(PreviousCodePoint(text, 10), 6u);
  EXPECT_EQ(PreviousCodePoint(text, 6), 3u);
  EXPECT_EQ(PreviousCodePoint(text, 3), 1u);
  EXPECT_EQ(PreviousCodePoint(text, 1), 0u);
}

}  // namespace
}  // namespace vllm::tokenizer
