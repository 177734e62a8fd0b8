// Tests that the bytes of the tokens of a text are the text that Decode returns.
#include "tokenizer/token_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/realdata.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::tokenizer {
namespace {

constexpr const char* kTexts[] = {"The quick  brown fox\n\tjumps", "{\"name\": \"Zoë\", \"n\": [1, -2.5e3]}",
                                  "日本語 👩‍👩‍👧 e\u0301", " leading and trailing ",
                                  "\x01\x7f▁ Ġ <0x0A>"};

// The decoder may remove a space from the start of the text.
std::string WithoutLeadingSpaces(const std::string& text) {
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

void Compare(const Tokenizer& tokenizer) {
  const std::optional<std::vector<std::string>> bytes = TokenBytes(tokenizer);
  ASSERT_TRUE(bytes);
  for (const char* text : kTexts) {
    const std::vector<int32_t> ids = tokenizer.Encode(text, /*add_special_tokens=*/false, /*parse_special=*/false);
    std::string joined;
    for (const int32_t id : ids) joined += (*bytes)[static_cast<size_t>(id)];
    EXPECT_EQ(WithoutLeadingSpaces(joined), WithoutLeadingSpaces(tokenizer.Decode(ids, /*skip_special_tokens=*/true)))
        << text;
  }
}

std::unique_ptr<Tokenizer> Fixture(const std::string& name) {
  return LoadTokenizerJson(std::string(VLLMCLI_TEST_DATA) + "/tokenizer/" + name);
}

TEST(TokenBytesTest, BytesOfAllTokensAreTheDecodedText) {
  for (const char* name : {"byte_level.json", "byte_fallback.json", "unigram.json", "unigram_bytes.json"}) {
    SCOPED_TRACE(name);
    Compare(*Fixture(name));
  }
}

TEST(TokenBytesTest, BytesOfAllTokensAreTheDecodedTextOfRealVocabularies) {
  VLLMCLI_NEEDS_REALDATA("tokenizers/phi-3-mini");
  for (const char* name : {"gpt2", "llama3.2", "mistral-7b-v0.3", "opt", "phi-3-mini", "qwen2.5"}) {
    SCOPED_TRACE(name);
    Compare(*LoadTokenizer(testing_support::RealData(std::string("tokenizers/") + name)));
  }
}

TEST(TokenBytesTest, AVocabularyOfWordPartsHasNone) { EXPECT_FALSE(TokenBytes(*Fixture("word_piece.json"))); }

TEST(TokenBytesTest, SpecialTokensHaveNone) {
  const auto tokenizer = Fixture("byte_level.json");
  const std::vector<std::string> bytes = *TokenBytes(*tokenizer);
  for (int32_t id = 0; id < tokenizer->VocabSize(); ++id) {
    if (!tokenizer->IsSpecial(id)) continue;
    EXPECT_EQ(bytes[static_cast<size_t>(id)], "") << id;
  }
}

}  // namespace
}  // namespace vllm::tokenizer
