// Makes a tokenizer of a tiktoken file of ranks. For the loaders of this folder.
//
//   file := (base64 of the token's bytes, ' ', rank, '\n')*      rank = id; merges of lower rank come first
// Such a file says neither how text is split into words nor which tokens are special. Both are known for the encodings
// in use, which are told apart by how many ranks they have.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/folder_settings.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm {

// Whether the first line is one of ranks.
bool LooksLikeTiktoken(std::string_view bytes);

// Throws TokenizerError: the file is damaged or its number of ranks belongs to no encoding known here.
std::unique_ptr<TokenizerParts> MakeTiktokenParts(std::string_view bytes, const std::string& name_for_errors,
                                                  const FolderSettings& settings);

}  // namespace vllm
