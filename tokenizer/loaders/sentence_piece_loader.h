// Builds a tokenizer from a SentencePiece file (tokenizer.model). For LoadTokenizer; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm::tokenizer {

// The tokenizer encodes and decodes like the SentencePiece library, except that it also recognizes control pieces and
// the added tokens of `settings` in text, and may add BOS and EOS tokens. Throws TokenizerError.
std::unique_ptr<TokenizerParts> MakeSentencePieceParts(std::string_view bytes, const std::string& name_for_errors,
                                                       const TokenizerConfig& settings);

}  // namespace vllm::tokenizer
