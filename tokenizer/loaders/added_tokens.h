// Adds the tokens of a tokenizer's configuration to its vocabulary. For the loaders; one thread.
#pragma once

#include <vector>

#include "tokenizer/tokenizer_parts.h"

namespace vllm::tokenizer {

// Adds `tokens` to `parts`. A token without an id gets the one that Hugging Face `tokenizers` would give it: the
// existing id of its text, or else the next free one. Throws TokenizerError. Must be called once.
// REQUIRES: parts.model and parts.normalizer are set.
void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts);

}  // namespace vllm::tokenizer
