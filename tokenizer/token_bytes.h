// TokenBytes: the bytes that each token of a vocabulary adds to the text, also if they are part of a character. Code
// that constrains an output byte by byte needs them. Pure function; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm::tokenizer {

// Returns the bytes of token id i in element i, so that the text of a sequence of tokens is the concatenation of their
// bytes, except that the decoder may remove a space from the start of the text. The bytes of special tokens and of ids
// without a token are empty. Returns nullopt if a token's text depends on its neighbors, as with WordPiece.
std::optional<std::vector<std::string>> TokenBytes(const Tokenizer& tokenizer);

}  // namespace vllm::tokenizer
