// Makes a tokenizer of a tiktoken file of ranks. For the loaders of this directory.
//
//   file := (base64 of the token's bytes, ' ', rank, '\n')*      rank = id; what has the lower rank merges first
// Such a file says neither how text is split into words nor which tokens are special. Both are known for the encodings
// in use, which are told apart by how many ranks they have.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm {

struct TiktokenEncoding {
  std::string_view name;
  size_t num_ranks;
  std::string_view regex;                  // as word_scanner.h has it
  std::vector<AddedToken> special_tokens;  // with their ids
  int32_t bos_id = -1;                     // put in front of every text
};

// Of "gpt2", "p50k_base", "cl100k_base", "o200k_base", "llama3" and "qwen"; null for other names.
std::unique_ptr<TiktokenEncoding> FindTiktokenEncoding(std::string_view name);

// Whether the first line is one of ranks.
bool LooksLikeTiktoken(std::string_view bytes);

// Throws TokenizerError: the file is damaged or, without `encoding`, its number of ranks belongs to none known here.
std::unique_ptr<TokenizerParts> MakeTiktokenParts(std::string_view bytes, const std::string& name_for_errors,
                                                  const TokenizerConfig& settings,
                                                  const TiktokenEncoding* encoding = nullptr);

}  // namespace vllm
