// Makes a tokenizer of a SentencePiece file. For the loaders of this directory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm {

// Encoding and decoding are those of the SentencePiece library, but that control pieces written out in a text are taken
// for what they are. Throws TokenizerError.
std::unique_ptr<TokenizerParts> MakeSentencePieceParts(std::string_view bytes, const std::string& name_for_errors,
                                                       const TokenizerConfig& settings);

}  // namespace vllm
