// The settings in tokenizer_config.json and added_tokens.json. Vocabularies without tokenizer.json (tokenizer.model,
// tiktoken ranks, vocab.json with merges.txt) do not contain these settings. Plain values and pure functions of the
// files, any thread.
//
//   tokenizer_config.json  {"bos_token", "eos_token", "unk_token", "pad_token": string or {"content": string},
//                           "add_bos_token", "add_eos_token", "add_prefix_space", "tokenizer_class",
//                           "added_tokens_decoder": {"id": {"content", "lstrip", "rstrip", "single_word", "normalized",
//                           "special"}...}}
//   added_tokens.json      {token: id...}
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/added_vocabulary.h"

namespace vllm::tokenizer {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> unk_token;
  std::optional<std::string> pad_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  bool add_prefix_space = false;
  std::string tokenizer_class;
  std::vector<AddedToken> added_tokens;  // with their ids, sorted by id
};

// Reads {"content", "single_word", "lstrip", "rstrip", "normalized", "special"}. Throws TokenizerError.
AddedToken ReadAddedToken(const nlohmann::json& json);

// Either path may be empty or name a missing file. Throws TokenizerError if a file cannot be read or is damaged.
TokenizerConfig ReadTokenizerConfig(const std::string& tokenizer_config_path, const std::string& added_tokens_path);

// Reads a whole file. Throws a TokenizerError that names the file if it cannot be read or is larger than
// kMaxTokenizerFileBytes.
inline constexpr size_t kMaxTokenizerFileBytes = size_t{1} << 30;
std::string ReadTokenizerFile(const std::string& path);

}  // namespace vllm::tokenizer
