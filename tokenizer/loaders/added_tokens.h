// Adds the tokens of a tokenizer's configuration to the vocabulary of its model. For the loaders of this directory.
#pragma once

#include <vector>

#include "tokenizer/tokenizer_parts.h"

namespace vllm {

// Gives each token without an id the one the reference would (the one its text has already, else the next free one) and
// adds it. To be called once.
// REQUIRES: parts.model and parts.normalizer are set. Throws TokenizerError.
void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts);

}  // namespace vllm
