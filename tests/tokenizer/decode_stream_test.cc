#include "tokenizer/decode_stream.h"

#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::tokenizer {
namespace {

std::string Stream(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids,
                   bool skip) {
  DecodeStream stream(tokenizer, skip);
  stream.Prime(prompt);
  std::string text;
  for (const int32_t id : ids) {
    const size_t before = text.size();
    stream.Feed(id, text);
    EXPECT_TRUE(IsValidUtf8(std::string_view(text).substr(before)));
  }
  stream.Flush(text);
  return text;
}

std::vector<int32_t> RandomIds(std::mt19937& random, const Tokenizer& tokenizer, size_t count) {
  std::vector<int32_t> ids;
  for (; count > 0; --count) ids.push_back(static_cast<int32_t>(random() % (tokenizer.VocabSize() + 3)) - 1);
  return ids;
}

// Returns a tokenizer for each decoder component, by the name of the component.
std::map<std::string, std::unique_ptr<Tokenizer>> ComponentTokenizers() {
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& line : ReadLines(DataPath("components.jsonl"))) {
    const nlohmann::json component = nlohmann::json::parse(line);
    if (!component.contains("decode")) continue;
    const nlohmann::json file = {
        {"model", {{"type", "BPE"}, {"vocab", component["vocab"]}, {"merges", nlohmann::json::array()}}},
        {"decoder", component["spec"]}};
    tokenizers[component["name"].get<std::string>()] = ParseTokenizerJson(file.dump(), "a component");
  }
  return tokenizers;
}

TEST(DecodeStreamTest, StreamingRandomIdsGivesTheSameTextAsDecode) {
  std::mt19937 random(11);
  for (const char* name : {"byte_level.json", "byte_fallback.json"}) {
    const auto tokenizer = LoadTokenizerJson(DataPath(name));
    for (int round = 0; round < 5000; ++round) {
      const auto ids = RandomIds(random, *tokenizer, random() % 20);
      const bool skip = random() % 2 == 0;
      ASSERT_EQ(Stream(*tokenizer, {}, ids, skip), tokenizer->Decode(ids, skip));
    }
  }
}

TEST(DecodeStreamTest, StreamingThroughDecoderComponentsGivesTheSameTextAsDecode) {
  std::mt19937 random(12);
  for (const auto& [name, tokenizer] : ComponentTokenizers()) {
    SCOPED_TRACE(name);
    for (int round = 0; round < 300; ++round) {
      const auto ids = RandomIds(random, *tokenizer, random() % 12);
      ASSERT_EQ(Stream(*tokenizer, {}, ids, false), tokenizer->Decode(ids, false));
    }
  }
}

TEST(DecodeStreamTest, ACopyContinuesIndependently) {
  std::mt19937 random(14);
  for (const auto& [name, tokenizer] : ComponentTokenizers()) {
    SCOPED_TRACE(name);
    for (int round = 0; round < 100; ++round) {
      const auto ids = RandomIds(random, *tokenizer, random() % 12);
      const auto others = RandomIds(random, *tokenizer, random() % 6);
      const size_t middle = random() % (ids.size() + 1);
      DecodeStream stream(*tokenizer, false);
      std::string text;
      for (size_t i = 0; i < middle; ++i) stream.Feed(ids[i], text);
      DecodeStream copy(stream);
      std::string text_of_copy = text;
      for (const int32_t id : others) copy.Feed(id, text_of_copy);
      for (size_t i = middle; i < ids.size(); ++i) stream.Feed(ids[i], text);
      stream.Flush(text);
      copy.Flush(text_of_copy);
      ASSERT_EQ(text, tokenizer->Decode(ids, false));
      std::vector<int32_t> ids_of_copy(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(middle));
      ids_of_copy.insert(ids_of_copy.end(), others.begin(), others.end());
      ASSERT_EQ(text_of_copy, tokenizer->Decode(ids_of_copy, false));
    }
  }
}

TEST(DecodeStreamTest, TextAfterAPromptIsTheRestOfTheWholeText) {
  std::mt19937 random(13);
  for (const char* name : {"byte_level.json", "byte_fallback.json"}) {
    const auto tokenizer = LoadTokenizerJson(DataPath(name));
    for (int round = 0; round < 3000; ++round) {
      const auto prompt = RandomIds(random, *tokenizer, random() % 10);
      const auto ids = RandomIds(random, *tokenizer, random() % 10);
      std::vector<int32_t> all = prompt;
      all.insert(all.end(), ids.begin(), ids.end());
      const std::string whole = tokenizer->Decode(all, false);
      const std::string prompt_text = tokenizer->Decode(prompt, false);
      size_t common = 0;
      while (common < whole.size() && common < prompt_text.size()) {
        const size_t step = CodePointAt(prompt_text, common).length;
        if (whole.compare(common, step, prompt_text, common, step) != 0) break;
        common += step;
      }
      ASSERT_EQ(Stream(*tokenizer, prompt, ids, false), whole.substr(common));
    }
  }
}

TEST(DecodeStreamTest, TheLineBreakAtTheEndOfAPromptIsNotRepeated) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_fallback.json"));
  const int32_t line_break = tokenizer->TokenToId("<0x0A>").value();
  const std::vector<int32_t> ids = tokenizer->Encode("hi", false);
  EXPECT_EQ(Stream(*tokenizer, {1, line_break}, ids, true), " hi");
}

TEST(DecodeStreamTest, ACharacterOfSeveralTokensIsAppendedWithItsLastToken) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  const std::vector<int32_t> ids = tokenizer->Encode("\xF0\x9F\x98\x80!", false);
  ASSERT_EQ(ids.size(), 5u);
  DecodeStream stream(*tokenizer, true);
  std::string text;
  for (size_t i = 0; i < 3; ++i) stream.Feed(ids[i], text);
  EXPECT_EQ(text, "");
  stream.Feed(ids[3], text);
  EXPECT_EQ(text, "\xF0\x9F\x98\x80");
  stream.Feed(ids[4], text);
  EXPECT_EQ(text, "\xF0\x9F\x98\x80!");
}

TEST(DecodeStreamTest, AnUnfinishedCharacterIsFlushedAsReplacementCharacter) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_level.json"));
  std::vector<int32_t> ids = tokenizer->Encode("a\xF0\x9F\x98\x80", false);
  ids.pop_back();
  EXPECT_EQ(Stream(*tokenizer, {}, ids, true), "a\xEF\xBF\xBD");
}

TEST(DecodeStreamTest, TheFirstSpaceAfterAPromptIsKept) {
  const auto tokenizer = LoadTokenizerJson(DataPath("byte_fallback.json"));
  const std::vector<int32_t> prompt = tokenizer->Encode("The keeper", true);
  const std::vector<int32_t> ids = tokenizer->Encode("of", false);
  EXPECT_EQ(Stream(*tokenizer, prompt, ids, true), " of");
}

}  // namespace
}  // namespace vllm::tokenizer
