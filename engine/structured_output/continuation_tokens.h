// ContinuationTokens: the tokens of a text that continues another one. Pure function; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/structured_output/matcher/vocab_trie.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

// Returns the tokens that `tokenizer` encodes `text` to in the middle of a longer text, with special tokens as ordinary
// text. Returns no tokens if they would not spell exactly `text`, for example because it is not valid UTF-8.
// `trie` has the bytes of the tokens.
std::vector<int32_t> ContinuationTokens(const tokenizer::Tokenizer& tokenizer, const VocabTrie& trie,
                                        std::string_view text);

}  // namespace vllm
