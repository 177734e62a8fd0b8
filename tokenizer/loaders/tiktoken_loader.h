// Builds a tokenizer from a tiktoken rank file. For LoadTokenizer; one thread.
//
//   file := (base64 of the token's bytes, ' ', rank, '\n')*      rank = id; lower ranks merge first
// Example: "IQ== 0\nIg== 1\n" has the tokens "!" and "\"".
// Such a file contains neither the regular expression that splits text into words nor the special tokens. Both are
// built in for the published encodings, which are identified by their number of ranks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm::tokenizer {

struct TiktokenEncoding {
  std::string_view name;
  size_t num_ranks;
  std::string_view regex;                  // one that FindWordScanner knows
  std::vector<AddedToken> special_tokens;  // with their ids
  int32_t bos_id = -1;                     // goes before the text unless add_bos_token is false; -1: none
};

// Knows "gpt2", "p50k_base", "cl100k_base", "o200k_base", "llama3" and "qwen". Returns null for other names.
std::unique_ptr<TiktokenEncoding> FindTiktokenEncoding(std::string_view name);

// Returns true if the first line looks like a base64 token and its rank.
bool LooksLikeTiktoken(std::string_view bytes);

// If `encoding` is null, identifies the encoding by the number of ranks. Throws TokenizerError if the file is damaged
// or the encoding is unknown.
std::unique_ptr<TokenizerParts> MakeTiktokenParts(std::string_view bytes, const std::string& name_for_errors,
                                                  const TokenizerConfig& settings,
                                                  const TiktokenEncoding* encoding = nullptr);

}  // namespace vllm::tokenizer
