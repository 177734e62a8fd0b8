#include "tokenizer/loaders/tiktoken_loader.h"

#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/formats/base64.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/unicode/byte_level.h"

namespace vllm::tokenizer {
namespace {

Tokenizer Load(const std::string& ranks, const std::string& encoding) {
  return Tokenizer(MakeTiktokenParts(ranks, "a test", {}, FindTiktokenEncoding(encoding).get()));
}

class TiktokenEncodingTest : public testing::TestWithParam<const char*> {};

TEST_P(TiktokenEncodingTest, MatchesTiktoken) {
  const std::string name = GetParam();
  const Tokenizer tokenizer = Load(ReadTestFile(DataPath("tiktoken/small.tiktoken")), name);
  for (const std::string& line : ReadLines(DataPath("tiktoken/" + name + ".jsonl"))) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.Encode(text, false, false), ids) << line;
    EXPECT_EQ(tokenizer.Decode(ids, false), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Committed, TiktokenEncodingTest,
                         testing::Values("gpt2", "cl100k_base", "o200k_base", "llama3", "qwen"),
                         [](const auto& param_info) { return std::string(param_info.param); });

// Checks that a rank file made from a real vocabulary gives the same ids as its tokenizer.json.
void ExpectSameAsTokenizerJson(const std::string& name, int32_t num_ranks) {
  const auto expected = LoadRealTokenizer(name);
  const std::string vectors = RealPath("tokenizer-vectors/hf/" + name + ".jsonl");
  if (!expected || !std::filesystem::exists(vectors)) GTEST_SKIP() << "reference data not found: " << name;
  std::string ranks;
  for (int32_t id = 0; id < num_ranks; ++id) {
    std::string bytes;
    AppendFromByteLevel(expected->IdToToken(id).value(), bytes);
    ranks += EncodeBase64(bytes) + " " + std::to_string(id) + "\n";
  }
  TempDirectory directory;
  std::ofstream(directory.path() + "/tokenizer.model") << ranks;
  const std::string config = RealPath("tokenizers/" + name + "/tokenizer_config.json");
  if (std::filesystem::exists(config)) std::filesystem::copy_file(config, directory.path() + "/tokenizer_config.json");
  const auto tokenizer = LoadTokenizer(directory.path());
  EXPECT_EQ(tokenizer->Kind(), "tiktoken");
  int num_texts = 0;
  for (const std::string& line : ReadLines(vectors)) {
    const std::string text = nlohmann::json::parse(line)["text"].get<std::string>();
    // A rank file has no normalizer, so skip texts that the normalizer of tokenizer.json changes.
    if (expected->Decode(expected->Encode(text, false, false), false) != text) continue;
    ++num_texts;
    EXPECT_EQ(tokenizer->Encode(text, true), expected->Encode(text, true)) << text;
  }
  EXPECT_GT(num_texts, 100);
  EXPECT_EQ(tokenizer->TokenToId("<|im_end|>"), name == "qwen2.5" ? std::optional(151645) : std::nullopt);
}

TEST(TiktokenTest, RanksOfLlama3MatchItsTokenizerJson) { ExpectSameAsTokenizerJson("llama3.2", 128000); }
TEST(TiktokenTest, RanksOfQwenMatchItsTokenizerJson) { ExpectSameAsTokenizerJson("qwen2.5", 151643); }

TEST(TiktokenTest, DamagedFilesAreRejected) {
  for (const char* ranks : {"IQ== 0\nIg== x\n", "IQ== 0\nIg==\n", "IQ== 0\n!!!! 1\n", "IQ== 0\nIQ== 1\n", "IQ== -1\n",
                            "IQ== 99999999999\n", "IQ== 0\nIg 1\n"}) {
    EXPECT_THROW(Load(ranks, "gpt2"), TokenizerError) << ranks;
  }
}

TEST(TiktokenTest, ANumberOfRanksThatNoEncodingHasIsReported) {
  try {
    MakeTiktokenParts("IQ== 0\n", "a test", {});
    FAIL();
  } catch (const TokenizerError& error) {
    EXPECT_NE(std::string(error.what()).find("1 ranks match no known encoding"), std::string::npos) << error.what();
  }
}

TEST(Base64Test, DecodingReturnsTheEncodedBytes) {
  std::mt19937 random(41);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (size_t i = random() % 40; i > 0; --i) bytes += static_cast<char>(random());
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes), "a test"), bytes);
  }
}

}  // namespace
}  // namespace vllm::tokenizer
