// Makes a tokenizer of a SentencePiece file. For the loaders of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/folder_settings.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm {

// Encoding and decoding are those of the SentencePiece library, but that control pieces written out in a text are taken
// for what they are. Throws TokenizerError.
std::unique_ptr<TokenizerParts> MakeSentencePieceParts(std::string_view bytes, const std::string& name_for_errors,
                                                       const FolderSettings& settings);

}  // namespace vllm
