// Checks tokenizers of many kinds: lossless tokenizers decode to the original text, streaming gives the same text as
// Decode, a second Encode gives the same ids, and repetitive text does not take quadratic time.
#include <functional>

#include "tests/tokenizer/gguf_test_file.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/loaders/tiktoken_loader.h"

namespace vllm::tokenizer {
namespace {

std::unique_ptr<Tokenizer> SentencePiece(const std::string& name) {
  TempDirectory directory;
  std::filesystem::copy_file(DataPath("sentencepiece/" + name + ".model"), directory.path() + "/tokenizer.model");
  return LoadTokenizer(directory.path());
}

std::unique_ptr<Tokenizer> Tiktoken(const std::string& encoding) {
  return std::make_unique<Tokenizer>(MakeTiktokenParts(ReadTestFile(DataPath("tiktoken/small.tiktoken")), "a test", {},
                                                       FindTiktokenEncoding(encoding).get()));
}

struct Kind {
  const char* name;
  bool lossless;
  std::function<std::unique_ptr<Tokenizer>()> make;
};

class EveryKindTest : public testing::TestWithParam<Kind> {};

// Returns a random text without U+0000 or U+2581. SentencePiece treats U+2581 as a space.
std::string RandomWords(std::mt19937& random) {
  std::string text = RandomText(random, 1 + random() % 30);
  for (size_t pos; (pos = text.find("\xE2\x96\x81")) != text.npos;) text.replace(pos, 3, "the ship");
  std::erase(text, '\0');
  return text.empty() ? "a" : text;
}

TEST_P(EveryKindTest, LosslessTokenizersDecodeToTheOriginalText) {
  if (!GetParam().lossless) return;
  const auto tokenizer = GetParam().make();
  std::mt19937 random(51);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = RandomWords(random);
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text, true, false), true), text);
  }
}

TEST_P(EveryKindTest, StreamingGivesTheSameTextAsDecode) {
  const auto tokenizer = GetParam().make();
  std::mt19937 random(52);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids;
    if (round % 2 == 0) {
      ids = tokenizer->Encode(RandomText(random, random() % 30), true);
    } else {
      const auto limit = static_cast<size_t>(tokenizer->VocabSize()) + 2;
      for (size_t count = random() % 20; count > 0; --count) ids.push_back(static_cast<int32_t>(random() % limit) - 1);
    }
    const bool skip = random() % 2 == 0;
    DecodeStream stream(*tokenizer, skip);
    std::string text;
    for (const int32_t id : ids) {
      const size_t before = text.size();
      stream.Feed(id, text);
      ASSERT_TRUE(IsValidUtf8(std::string_view(text).substr(before)));
    }
    stream.Flush(text);
    ASSERT_EQ(text, tokenizer->Decode(ids, skip));
  }
}

TEST_P(EveryKindTest, EncodingTwiceGivesTheSameIds) {
  const auto tokenizer = GetParam().make();
  const auto fresh = GetParam().make();
  std::mt19937 random(53);
  for (int round = 0; round < 500; ++round) {
    const std::string text = RandomText(random, 1 + random() % 40);
    const auto ids = tokenizer->Encode(text, true);
    ASSERT_EQ(tokenizer->Encode(text, true), ids);
    if (round % 50 == 0) {
      ASSERT_EQ(fresh->Encode(text, true), ids);
    }
  }
}

TEST_P(EveryKindTest, AMegabyteOfRepeatedTextDoesNotTakeQuadraticTime) {
  const auto tokenizer = GetParam().make();
  for (const char* unit : {"a", "the", " ", "\n", "7", "\xE4\xB8\xAD", "\xCC\x81", "\xE2\x96\x81"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    const double start = CpuSeconds();
    tokenizer->Encode(text, false);
    // A quadratic algorithm would take minutes.
    EXPECT_LT(CpuSeconds() - start, 10.0) << unit;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryKindTest,
    testing::Values(Kind{"Unigram", false, [] { return LoadTokenizerJson(DataPath("unigram.json")); }},
                    Kind{"UnigramBytes", false, [] { return LoadTokenizerJson(DataPath("unigram_bytes.json")); }},
                    Kind{"WordPiece", false, [] { return LoadTokenizerJson(DataPath("word_piece.json")); }},
                    Kind{"WordLevel", false, [] { return LoadTokenizerJson(DataPath("word_level.json")); }},
                    Kind{"SentencePieceUnigram", false, [] { return SentencePiece("unigram"); }},
                    Kind{"SentencePieceUnigramBytes", false, [] { return SentencePiece("unigram_bytes"); }},
                    Kind{"SentencePieceBpe", false, [] { return SentencePiece("bpe"); }},
                    Kind{"SentencePieceBpeBytes", true, [] { return SentencePiece("bpe_bytes"); }},
                    Kind{"SentencePieceUnused", false, [] { return SentencePiece("bpe_unused"); }},
                    Kind{"TiktokenCl100k", true, [] { return Tiktoken("cl100k_base"); }},
                    Kind{"TiktokenO200k", true, [] { return Tiktoken("o200k_base"); }},
                    Kind{"TiktokenLlama3", true, [] { return Tiktoken("llama3"); }}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace vllm::tokenizer
