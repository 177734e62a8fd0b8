// MakeByteTokenizer(): a tokenizer whose ids 0 to 255 are the bytes, so that a test can split text at any byte. Id 256
// is "<s>", the BOS token, which the tokenizer adds before a prompt. Id 257 is "</s>", the EOS token. Id 258 is
// " word", one token of five characters. A test may add more tokens, with the ids from 259 on. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::testing {

inline constexpr int32_t kBos = 256;
inline constexpr int32_t kEos = 257;
inline constexpr int32_t kWord = 258;

struct AddedToken {
  std::string text;
  bool is_special = true;
};

inline std::unique_ptr<tokenizer::Tokenizer> MakeByteTokenizer(const std::vector<AddedToken>& more = {}) {
  std::string vocab;
  int32_t next_unprintable = 256;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    std::string token;
    tokenizer::AppendCodePoint(static_cast<char32_t>(printable ? byte : next_unprintable++), token);
    if (token == "\"" || token == "\\") token = "\\" + token;
    vocab += (vocab.empty() ? "\"" : ",\"") + token + "\":" + std::to_string(byte);
  }
  const auto added = [](int32_t id, const std::string& content, bool special) {
    return "{\"id\":" + std::to_string(id) + ",\"content\":\"" + content +
           "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":" +
           (special ? "true" : "false") + "}";
  };
  std::string more_added;
  for (size_t i = 0; i < more.size(); ++i) {
    more_added += "," + added(kWord + 1 + static_cast<int32_t>(i), more[i].text, more[i].is_special);
  }
  const std::string json =
      "{\"added_tokens\":[" + added(kBos, "<s>", true) + "," + added(kEos, "</s>", true) + "," +
      added(kWord, " word", false) + more_added +
      "],\"normalizer\":null,"
      "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false},"
      "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}"
      "},"
      "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],"
      "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[256],\"tokens\":[\"<s>\"]}}},"
      "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false},"
      "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
      "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{" +
      vocab + "},\"merges\":[]}}";
  return tokenizer::ParseTokenizerJson(json, "byte tokenizer");
}

// Returns one id for each byte of `text`.
inline std::vector<int32_t> Bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

}  // namespace vllm::testing
