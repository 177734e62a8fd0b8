// Compares ids and decoded text with the test vectors of two other projects that use the same vocabularies:
// swift-transformers and vllm.cpp.
#include <nlohmann/json.hpp>

#include "tests/tokenizer/gguf_test_file.h"

namespace vllm::tokenizer {
namespace {

std::optional<nlohmann::json> RealJson(const std::string& name) {
  const std::string path = RealPath("tokenizer-vectors/" + name);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return nlohmann::json::parse(ReadTestFile(path));
}

// Applies clean_up_tokenization_spaces of `transformers`, a step after decoding. The vectors of swift-transformers
// include this step if the model's tokenizer_config.json enables it.
std::string CleanedUp(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    for (size_t pos = 0; (pos = text.find(from, pos)) != text.npos;) text.replace(pos, from.size(), to);
  }
  return text;
}

void ExpectSwiftVectors(const Tokenizer& tokenizer, const nlohmann::json& rows, bool cleans_up) {
  const auto decode = [&](const std::vector<int32_t>& ids, bool skip_special_tokens) {
    const std::string text = tokenizer.Decode(ids, skip_special_tokens);
    return cleans_up ? CleanedUp(text) : text;
  };
  ASSERT_GT(rows.size(), 10u);
  for (const nlohmann::json& row : rows) {
    const auto text = row["input"].get<std::string>();
    const auto ids = row["encoded"]["input_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.Encode(text, true), ids) << text;
    EXPECT_EQ(decode(ids, false), row["decoded_with_special"].get<std::string>());
    EXPECT_EQ(decode(ids, true), row["decoded_without_special"].get<std::string>());
  }
}

TEST(OtherProjectsTest, SwiftTransformersAgreesOnGpt2) {
  const auto rows = RealJson("swift-transformers/distilgpt2.json");
  const auto article = RealJson("swift-transformers/gpt2_encoded_tokens.json");
  const auto tokenizer = LoadRealTokenizer("gpt2");
  if (!rows || !article || !tokenizer) GTEST_SKIP() << "reference data not found: swift-transformers or gpt2";
  ExpectSwiftVectors(*tokenizer, *rows, true);
  const auto ids = (*article)["token_ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(tokenizer->Encode((*article)["text"].get<std::string>(), true), ids);
  EXPECT_EQ(tokenizer->Decode(ids, false), (*article)["decoded_text"].get<std::string>());
  const auto words = (*article)["bpe_tokens"].get<std::vector<std::string>>();
  ASSERT_EQ(words.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(tokenizer->IdToToken(ids[i]), words[i]);
}

TEST(OtherProjectsTest, SwiftTransformersAgreesOnLlama3) {
  const auto rows = RealJson("swift-transformers/pcuenq__Llama-3.2-1B-Instruct-tokenizer.json");
  const auto tokenizer = LoadRealTokenizer("llama3.2");
  if (!rows || !tokenizer) GTEST_SKIP() << "reference data not found: swift-transformers or llama3.2";
  ExpectSwiftVectors(*tokenizer, *rows, true);
}

TEST(OtherProjectsTest, SwiftTransformersAgreesOnLlama2AsGguf) {
  const auto rows = RealJson("swift-transformers/coreml-projects__Llama-2-7b-chat-coreml.json");
  const auto article = RealJson("swift-transformers/llama_encoded.json");
  const std::string path = RealPath("tokenizers/gguf-vocab/ggml-vocab-llama-spm.gguf");
  if (!rows || !article || !std::filesystem::exists(path))
    GTEST_SKIP() << "reference data not found: swift-transformers or ggml-vocab-llama-spm.gguf";
  const GgufTestFile file(path);
  const auto tokenizer = MakeGgufTokenizer(file.vocabulary, "llama-spm");
  ExpectSwiftVectors(*tokenizer, *rows, false);
  const auto ids = (*article)["token_ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(tokenizer->Encode((*article)["text"].get<std::string>(), true), ids);
  EXPECT_EQ(tokenizer->Decode(ids, false), (*article)["decoded_text"].get<std::string>());
}

TEST(OtherProjectsTest, VllmCppAgreesOnMistral) {
  const auto vectors = RealJson("vllm.cpp/mistral_encodings.json");
  const auto tokenizer = LoadRealTokenizer("mistral-7b-v0.3");
  if (!vectors || !tokenizer) GTEST_SKIP() << "reference data not found: vllm.cpp or mistral-7b-v0.3";
  for (const nlohmann::json& row : (*vectors)["entries"]) {
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->Encode(text, false), ids) << text;
    EXPECT_EQ(tokenizer->Encode(text, true), row["ids_special"].get<std::vector<int32_t>>());
    EXPECT_EQ(tokenizer->Decode(ids, false), row["decode"].get<std::string>());
  }
}

}  // namespace
}  // namespace vllm::tokenizer
