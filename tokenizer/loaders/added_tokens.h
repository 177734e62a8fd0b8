// AddTokens: fills a tokenizer's AddedVocabulary and assigns ids to tokens that have none. Called by the loaders; one
// thread.
#pragma once

#include <vector>

#include "tokenizer/tokenizer_parts.h"

namespace vllm::tokenizer {

// Adds `tokens` to `parts`. A token without an id gets the id that Hugging Face `tokenizers` would give it: the
// existing id of its content, or else the next id after the vocabulary. Throws TokenizerError. Must be called once.
// REQUIRES: parts.model is set, and so is parts.normalizer if the tokenizer has one.
void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts);

}  // namespace vllm::tokenizer
