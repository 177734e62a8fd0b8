// Tests pairs of texts and the limit of their length. The expected ids are those of Hugging Face tokenizers 0.23 with
// the truncation strategy longest_first.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/tokenizer/tokenizer_test_util.h"

namespace vllm::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

class PairTest : public testing::Test {
 protected:
  // [CLS] is 0, [SEP] is 1, a is 2 and b is 3.
  std::unique_ptr<Tokenizer> Load(const std::string& post_processor) const {
    const std::string path = temp_.path() + "/tokenizer.json";
    std::ofstream(path) << R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": null, "post_processor": )"
                        << post_processor
                        << R"(, "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": {"[CLS]": 0, "[SEP]": 1, "a": 2, "b": 3, "[UNK]": 4}}})";
    return LoadTokenizerJson(path);
  }
  static std::string Repeat(const std::string& word, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += word + " ";
    return text;
  }

  TempDirectory temp_;
};

struct PairCase {
  size_t num_first, num_second, limit;
  Ids ids;
};

TEST_F(PairTest, BertJoinsWithOneSeparatorAndTwoTypes) {
  const auto tokenizer = Load(R"({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]})");
  for (const PairCase& test : std::vector<PairCase>{{2, 3, 100, {0, 2, 2, 1, 3, 3, 3, 1}},
                                                    {2, 3, 7, {0, 2, 2, 1, 3, 3, 1}},
                                                    {5, 2, 7, {0, 2, 2, 1, 3, 3, 1}},
                                                    {2, 5, 7, {0, 2, 2, 1, 3, 3, 1}},
                                                    {5, 5, 8, {0, 2, 2, 1, 3, 3, 3, 1}},
                                                    {5, 5, 9, {0, 2, 2, 2, 1, 3, 3, 3, 1}},
                                                    {1, 1, 3, {0, 1, 1}},
                                                    {6, 6, 4, {0, 1, 3, 1}}}) {
    const BoundedEncoding pair =
        tokenizer->EncodePair(Repeat("a", test.num_first), Repeat("b", test.num_second), test.limit);
    EXPECT_EQ(pair.ids, test.ids) << test.num_first << ", " << test.num_second << ", " << test.limit;
    EXPECT_EQ(pair.was_cut, test.limit < 100);
    ASSERT_EQ(pair.type_ids.size(), pair.ids.size());
    bool in_second = false;
    for (size_t i = 0; i < pair.ids.size(); ++i) {
      EXPECT_EQ(pair.type_ids[i], in_second ? 1 : 0);
      in_second = in_second || pair.ids[i] == 1;
    }
  }
}

TEST_F(PairTest, RobertaJoinsWithTwoSeparatorsAndOneType) {
  const auto tokenizer = Load(R"({"type": "RobertaProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]})");
  for (const PairCase& test : std::vector<PairCase>{{2, 3, 100, {0, 2, 2, 1, 1, 3, 3, 3, 1}},
                                                    {2, 3, 7, {0, 2, 1, 1, 3, 3, 1}},
                                                    {5, 2, 7, {0, 2, 2, 1, 1, 3, 1}},
                                                    {2, 5, 7, {0, 2, 1, 1, 3, 3, 1}},
                                                    {5, 5, 8, {0, 2, 2, 1, 1, 3, 3, 1}},
                                                    {6, 6, 4, {0, 1, 1, 1}}}) {
    const BoundedEncoding pair =
        tokenizer->EncodePair(Repeat("a", test.num_first), Repeat("b", test.num_second), test.limit);
    EXPECT_EQ(pair.ids, test.ids) << test.num_first << ", " << test.num_second << ", " << test.limit;
    EXPECT_EQ(pair.type_ids, Ids(pair.ids.size(), 0));
  }
}

TEST_F(PairTest, TemplateNamesTheTypesOfAPair) {
  const std::string special = R"("special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [1], "tokens": ["[SEP]"]}})";
  const auto tokenizer = Load(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 2}},
               {"Sequence": {"id": "A", "type_id": 0}}], )" +
                              special + "}");
  const BoundedEncoding pair = tokenizer->EncodePair("a a", "b", 100);
  EXPECT_EQ(pair.ids, (Ids{3, 1, 2, 2}));
  EXPECT_EQ(pair.type_ids, (Ids{1, 2, 0, 0}));
}

TEST_F(PairTest, WithoutATemplateForPairsThereIsAnError) {
  EXPECT_THROW(Load("null")->EncodePair("a", "b", 100), TokenizerError);
  // Each of two processors joins pairs.
  const std::string bert = R"({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]})";
  const auto twice = Load(R"({"type": "Sequence", "processors": [)" + bert + ", " + bert + "]}");
  EXPECT_THROW(twice->EncodePair("a", "b", 100), TokenizerError);
}

TEST_F(PairTest, CutTextKeepsItsSpecialTokens) {
  const auto tokenizer = Load(R"({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]})");
  EXPECT_EQ(tokenizer->EncodeBounded("a a a", 5).ids, (Ids{0, 2, 2, 2, 1}));
  EXPECT_FALSE(tokenizer->EncodeBounded("a a a", 5).was_cut);
  EXPECT_EQ(tokenizer->EncodeBounded("a a a", 4).ids, (Ids{0, 2, 2, 1}));
  EXPECT_TRUE(tokenizer->EncodeBounded("a a a", 4).was_cut);
  EXPECT_EQ(tokenizer->EncodeBounded("a a a", 1).ids, (Ids{0, 1}));
}

}  // namespace
}  // namespace vllm::tokenizer
