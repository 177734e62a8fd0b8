// Compares ids and decoded text with the committed vectors, which tokenizer_golden.py and tokenizer_models_golden.py in
// tests/golden made with Hugging Face `tokenizers`.
#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::tokenizer {
namespace {

class GoldenFileTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenFileTest, IdsAndTextsMatchTheReference) {
  const auto tokenizer = LoadTokenizerJson(DataPath(std::string(GetParam()) + ".json"));
  const std::vector<std::string> lines = ReadLines(DataPath(std::string(GetParam()) + ".jsonl"));
  ASSERT_GT(lines.size(), 50u);
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const nlohmann::json row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    const auto ids_special = row["ids_special"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->Encode(text, false), ids);
    EXPECT_EQ(tokenizer->Encode(text, true), ids_special);
    EXPECT_EQ(tokenizer->Decode(ids, false), row["decode"].get<std::string>());
    EXPECT_EQ(tokenizer->Decode(ids_special, true), row["decode_skip_special"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Committed, GoldenFileTest,
                         testing::Values("byte_level", "byte_fallback", "unigram", "unigram_bytes", "word_piece",
                                         "word_level"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(GoldenComponentsTest, EachComponentMatchesTheReference) {
  std::vector<std::string> lines = ReadLines(DataPath("components.jsonl"));
  for (std::string& line : ReadLines(DataPath("components_more.jsonl"))) lines.push_back(std::move(line));
  ASSERT_GT(lines.size(), 80u);
  for (const std::string& line : lines) {
    const nlohmann::json component = nlohmann::json::parse(line);
    SCOPED_TRACE(component["name"].get<std::string>());
    const bool decodes = component.contains("decode");
    nlohmann::json file;
    file["model"] = {{"type", "BPE"}, {"vocab", component["vocab"]}, {"merges", nlohmann::json::array()}};
    if (!decodes) file["model"]["end_of_word_suffix"] = "</w>";
    file[component["key"].get<std::string>()] = component["spec"];
    const auto tokenizer = ParseTokenizerJson(file.dump(), "a component");
    for (const nlohmann::json& row : component[decodes ? "decode" : "encode"]) {
      SCOPED_TRACE(row.dump());
      const auto ids = row["ids"].get<std::vector<int32_t>>();
      const auto text = row["text"].get<std::string>();
      if (!decodes) {
        EXPECT_EQ(tokenizer->Encode(text, true), ids);
        continue;
      }
      EXPECT_EQ(tokenizer->Decode(ids, true), text);
    }
  }
}

}  // namespace
}  // namespace vllm::tokenizer
