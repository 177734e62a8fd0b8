// Compares every id and decoded text with vectors made by the SentencePiece library.
#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::tokenizer {
namespace {

void ExpectAgreement(const Tokenizer& tokenizer, const std::string& vectors) {
  int num_wrong = 0;
  for (const std::string& line : ReadLines(vectors)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    if (row.contains("text")) {
      EXPECT_EQ(tokenizer.Encode(row["text"].get<std::string>(), false, false), ids)
          << (++num_wrong, line.substr(0, 400));
    }
    EXPECT_EQ(tokenizer.Decode(ids, true), row["decode"].get<std::string>()) << (++num_wrong, line.substr(0, 400));
    DecodeStream stream(tokenizer, true);
    std::string streamed;
    for (const int32_t id : ids) stream.Feed(id, streamed);
    stream.Flush(streamed);
    EXPECT_EQ(streamed, tokenizer.Decode(ids, true));
    if (num_wrong > 5) break;
  }
}

class SmallModelTest : public testing::TestWithParam<const char*> {};

TEST_P(SmallModelTest, MatchesTheLibrary) {
  TempDirectory directory;
  const std::string name = std::string("sentencepiece/") + GetParam();
  std::filesystem::copy_file(DataPath(name + ".model"), directory.path() + "/tokenizer.model");
  ExpectAgreement(*LoadTokenizer(directory.path()), DataPath(name + ".jsonl"));
}

INSTANTIATE_TEST_SUITE_P(SentencePiece, SmallModelTest,
                         testing::Values("unigram", "unigram_bytes", "unigram_loose", "bpe", "bpe_bytes", "bpe_suffix",
                                         "unigram_suffix", "bpe_unused", "unigram_unused", "unigram_ties"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(SentencePieceTest, RealModelsMatchTheLibrary) {
  int num_models = 0;
  for (const std::string name : {"stories260K", "babyllama-tok105"}) {
    const std::string vectors = RealPath("tokenizer-vectors/sentencepiece/" + name + ".jsonl");
    const std::string model = RealPath("models/" + name + "/hf-f32/tokenizer.model");
    if (!std::filesystem::exists(vectors) || !std::filesystem::exists(model)) continue;
    TempDirectory directory;
    std::filesystem::copy_file(model, directory.path() + "/tokenizer.model");
    ExpectAgreement(*LoadTokenizer(directory.path()), vectors);
    ++num_models;
  }
  if (num_models == 0) GTEST_SKIP() << "reference data not found: SentencePiece models";
}

}  // namespace
}  // namespace vllm::tokenizer
