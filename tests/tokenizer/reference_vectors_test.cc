// Compares every id and decoded text with vectors made by Hugging Face `tokenizers`.
#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/decode_stream.h"

namespace vllm::tokenizer {
namespace {

class ReferenceVectorsTest : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceVectorsTest, IdsAndTextsMatchTheReference) {
  const std::string vectors = RealPath("tokenizer-vectors/hf/") + GetParam() + ".jsonl";
  const std::unique_ptr<Tokenizer> tokenizer = LoadRealTokenizer(GetParam());
  if (!tokenizer || !std::filesystem::exists(vectors)) GTEST_SKIP() << "reference data not found: " << GetParam();
  int num_wrong = 0;
  for (const std::string& line : ReadLines(vectors)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    const auto ids_special = row["ids_special"].get<std::vector<int32_t>>();
    bool all_equal = true;
    const auto expect_equal = [&all_equal](const auto& actual, const auto& expected) {
      all_equal = all_equal && actual == expected;
      EXPECT_EQ(actual, expected);
    };
    expect_equal(tokenizer->Encode(text, false), ids);
    expect_equal(tokenizer->Encode(text, true), ids_special);
    // "decode" is the text of `ids`, and "decode_skip_special" is the text of `ids_special`.
    expect_equal(tokenizer->Decode(ids, false), row["decode"].get<std::string>());
    expect_equal(tokenizer->Decode(ids_special, true), row["decode_skip_special"].get<std::string>());
    if (!all_equal) std::cerr << "text: " << row["text"].dump().substr(0, 300) << "\n";
    if (!all_equal && ++num_wrong == 5) break;
  }
}

TEST_P(ReferenceVectorsTest, StreamingGivesTheSameTextAsDecode) {
  const std::string vectors = RealPath("tokenizer-vectors/hf/") + GetParam() + ".jsonl";
  const std::unique_ptr<Tokenizer> tokenizer = LoadRealTokenizer(GetParam());
  if (!tokenizer || !std::filesystem::exists(vectors)) GTEST_SKIP() << "reference data not found: " << GetParam();
  for (const std::string& line : ReadLines(vectors)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const auto ids = row["ids_special"].get<std::vector<int32_t>>();
    for (const bool skip : {false, true}) {
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
}

INSTANTIATE_TEST_SUITE_P(Real, ReferenceVectorsTest,
                         testing::Values("TinyStories-656K", "babyllama-tok105", "gpt2", "llama3.2", "mistral-7b-v0.3",
                                         "opt", "phi-3-mini", "qwen2.5", "stories260K", "toy-roberta"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace vllm::tokenizer
