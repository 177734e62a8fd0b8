// TokenSlices: the tokens of a vocabulary, sorted by how much plain text (plain_text.h) they begin with. Where a
// grammar allows any plain text of up to n characters, the plain tokens need not be looked at one by one: their mask is
// ready. (llguidance has such slices too.) Immutable; any thread.
//
// A plain token is the beginning of a plain text; its last character may be incomplete. Any other token consists of
// plain characters and a suffix, which begins with the first byte that is not plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/structured_output/matcher/token_trie.h"

namespace vllm {

// The tokens that may follow: token t is bit t % 32 of word t / 32, as in vLLM. [(vocab_size + 31) / 32]
using TokenBitmask = std::vector<uint32_t>;

inline void SetBits(TokenBitmask& mask, std::span<const int32_t> token_ids) {
  for (const int32_t id : token_ids) mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
}

class TokenSlices {
 public:
  // Tokens of more characters are in long_tokens().
  static constexpr size_t kMaxCharacters = 32;

  // Leaves out tokens without bytes. REQUIRES: token_bytes.size() <= vocab_size.
  TokenSlices(std::span<const std::string> token_bytes, int64_t vocab_size);

  // All plain tokens; all others.
  const TokenTrie& plain() const { return plain_; }
  const TokenTrie& rest() const { return rest_; }
  // The mask of all plain tokens, and of those of at most num_characters, counting an incomplete one.
  // REQUIRES: num_characters <= kMaxCharacters.
  const TokenBitmask& PlainMask() const { return masks_.back(); }
  const TokenBitmask& PlainMask(size_t num_characters) const { return masks_[num_characters]; }
  // The suffixes of the tokens in rest() that begin with exactly num_characters plain characters.
  // REQUIRES: num_characters <= kMaxCharacters.
  const TokenTrie& Suffixes(size_t num_characters) const { return suffixes_[num_characters]; }
  // The tokens of plain() and rest() that are in no PlainMask(num_characters) and no Suffixes.
  const TokenTrie& long_tokens() const { return long_tokens_; }

 private:
  TokenTrie plain_, rest_, long_tokens_;
  std::vector<TokenBitmask> masks_;  // [kMaxCharacters + 2]
  std::vector<TokenTrie> suffixes_;  // [kMaxCharacters + 1]
};

}  // namespace vllm
