#include "tokenizer/tokenizer.h"
#include "tokenizer/loaders/load_tokenizer.h"

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/unicode_text.h"

namespace vllm::tokenizer {
namespace {

TEST(TokenizerTest, ReportsItsVocabulary) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  EXPECT_EQ(tokenizer->VocabSize(), 485);
  EXPECT_EQ(tokenizer->Kind(), "byte-level BPE");
  EXPECT_EQ(tokenizer->TokenToId("<|end|>"), 480);
  EXPECT_EQ(tokenizer->IdToToken(480), "<|end|>");
  EXPECT_TRUE(tokenizer->IsSpecial(480));
  EXPECT_FALSE(tokenizer->IsSpecial(481));
  EXPECT_FALSE(tokenizer->IsSpecial(-5));
  EXPECT_EQ(tokenizer->TokenToId("\xC4\xA0the").has_value(), true);
  EXPECT_FALSE(tokenizer->TokenToId("no such token"));
  EXPECT_FALSE(tokenizer->IdToToken(485));
  EXPECT_FALSE(tokenizer->IdToToken(-1));
  EXPECT_EQ(LoadTokenizerJson(DataPath("byte_fallback.json"))->Kind(), "BPE with byte fallback");
}

TEST(TokenizerTest, AByteLevelVocabularyRoundTripsRandomTexts) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  std::mt19937 random(23);
  for (int round = 0; round < 3000; ++round) {
    // The normalizer is NFC, so use only characters that it does not change.
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) AppendCodePoint(1 + random() % 0x2FF, text);
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text, false), false), text);
  }
}

TEST(TokenizerTest, InvalidUtf8IsEncodedAsReplacementCharacters) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  EXPECT_EQ(tokenizer->Encode("a\xFF\xC3 b", false), tokenizer->Encode("a\xEF\xBF\xBD\xEF\xBF\xBD b", false));
}

TEST(TokenizerTest, EncodingStopsIfTheStopFlagIsSet) {
  const auto tokenizer = LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  const std::string text = "How do I run a batch of prompts?";
  const std::vector<int32_t> ids = tokenizer->Encode(text, false);
  std::atomic<bool> stop{false};
  tokenizer->SetStop(&stop);
  EXPECT_EQ(tokenizer->Encode(text, false), ids);
  stop = true;
  EXPECT_THROW(tokenizer->Encode(text, false), EncodingStopped);
  stop = false;
  EXPECT_EQ(tokenizer->Encode(text, false), ids);
}

// Long words are encoded in windows, and the flag is checked in each of them.
TEST(TokenizerTest, EncodingALongWordStopsIfAnotherThreadSetsTheStopFlag) {
  const auto tokenizer = LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  const std::string word(size_t{64} << 20, 'a');
  std::atomic<bool> stop{false};
  tokenizer->SetStop(&stop);
  std::thread setter([&stop] { stop = true; });
  EXPECT_THROW(tokenizer->Encode(word, false), EncodingStopped);
  setter.join();
}

TEST(TokenizerTest, IdsWithoutATokenAreSkipped) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  std::vector<int32_t> ids = tokenizer->Encode("The ships", false);
  ids.insert(ids.begin() + 1, {-1, 1 << 30, 485, INT32_MIN, INT32_MAX});
  EXPECT_EQ(tokenizer->Decode(ids, true), "The ships");
}

TEST(TokenizerTest, AVocabularyWithoutMergesEncodesSingleCharacters) {
  const auto tokenizer = ParseTokenizerJson(
      R"({"model": {"type": "BPE", "unk_token": "?", "fuse_unk": true, "vocab": {"?": 0, "a": 1, "b": 2}, "merges": []}})",
      "a test");
  EXPECT_EQ(tokenizer->Encode("abxxba", true), (std::vector<int32_t>{1, 2, 0, 2, 1}));
  EXPECT_EQ(tokenizer->Kind(), "BPE");
}

TEST(TokenizerTest, AHugeRepetitiveTextDoesNotTakeQuadraticTime) {
  for (const char* name : {"byte_level.json", "byte_fallback.json"}) {
    const auto tokenizer = LoadTokenizerJson(DataPath(name));
    for (const char* unit : {"a", "e ", " ", "\n", "7", "<|end|>", "[LS]", " [LS]", "\xCC\x81", "<", "\xE2\x96\x81"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += unit;
      const double start = CpuSeconds();
      EXPECT_FALSE(tokenizer->Encode(text, true).empty());
      EXPECT_LT(CpuSeconds() - start, 10.0) << name << " " << unit;
    }
  }
}

TEST(TokenizerTest, NormalizingHostileRunsOfMarksDoesNotTakeQuadraticTime) {
  std::string text = "a";
  // Marks of two combining classes in the wrong order. A bubble sort would take quadratic time.
  while (text.size() < (1 << 20)) text += "\xCC\x81\xCC\xA3";
  for (const UnicodeForm form : {UnicodeForm::kNfc, UnicodeForm::kNfd, UnicodeForm::kNfkc, UnicodeForm::kNfkd}) {
    std::string normalized = text;
    const double start = CpuSeconds();
    NormalizeUnicode(form, normalized);
    EXPECT_LT(CpuSeconds() - start, 5.0);
    EXPECT_TRUE(IsValidUtf8(normalized));
  }
}

TEST(TokenizerTest, AddedWhitespaceTokensWithLstripAndRstripDoNotTakeQuadraticTime) {
  const auto tokenizer = ParseTokenizerJson(
      R"({"added_tokens": [{"id": 1, "content": " ", "rstrip": true, "lstrip": true, "normalized": false}],
          "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
      "a test");
  const double start = CpuSeconds();
  tokenizer->Encode(std::string(1 << 20, ' '), false);
  EXPECT_LT(CpuSeconds() - start, 5.0);
}

TEST(TokenizerTest, ManyThreadsGetTheSameIds) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  std::mt19937 random(29);
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("The keeper of the ships " + RandomText(random, 40));
  const auto encode_all = [&texts](const Tokenizer& with) {
    std::vector<std::vector<int32_t>> all;
    for (const std::string& text : texts) all.push_back(with.Encode(text, true));
    return all;
  };
  const auto expected = encode_all(*LoadTokenizerJson(DataPath("byte_level.json")));
  std::vector<std::vector<std::vector<int32_t>>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = encode_all(*tokenizer); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(TokenizerTest, ByteLevelWordsWithAnEndOfWordSuffixAreSupported) {
  const auto tokenizer = ParseTokenizerJson(
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
          "model": {"type": "BPE", "end_of_word_suffix": "</w>", "merges": ["a b</w>"],
                    "vocab": {"a": 0, "b": 1, "a</w>": 2, "b</w>": 3, "ab</w>": 4, "\u0120": 5}}})",
      "a test");
  EXPECT_EQ(tokenizer->Encode("ab a abb", false), (std::vector<int32_t>{4, 5, 2, 5, 0, 1, 3}));
}

TEST(UnicodeTest, CharactersHaveTheExpectedClasses) {
  const UnicodeTable& table = UnicodeTable::Get();
  EXPECT_TRUE(table.Is('a', kLetter));
  EXPECT_TRUE(table.Is(0x4E2D, kLetter));
  EXPECT_TRUE(table.Is(0x1E030, kLetter));  // Unicode 15
  EXPECT_TRUE(table.Is(0xBD, kNumber));
  EXPECT_TRUE(table.Is(0x3000, kSpace));
  EXPECT_TRUE(table.Is(0x85, kSpace));
  EXPECT_FALSE(table.Is(0x200B, kSpace));
  EXPECT_TRUE(table.Is('$', kPunctuation));
  EXPECT_TRUE(table.Is(0x301, kMark));
  EXPECT_FALSE(table.Is(0x10FFFF, 0x7F));
}

}  // namespace
}  // namespace vllm::tokenizer
