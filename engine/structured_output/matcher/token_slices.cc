#include "engine/structured_output/matcher/token_slices.h"

#include <string_view>

#include "engine/structured_output/matcher/plain_text.h"

namespace vllm {

TokenSlices::TokenSlices(std::span<const std::string> token_bytes, int64_t vocab_size)
    : masks_(kMaxCharacters + 2, TokenBitmask(static_cast<size_t>((vocab_size + 31) / 32), 0)) {
  std::vector<TokenTrie::Token> plain, rest, long_tokens;
  std::vector<std::vector<TokenTrie::Token>> suffixes(kMaxCharacters + 1);
  for (size_t i = 0; i < token_bytes.size(); ++i) {
    const std::string_view bytes = token_bytes[i];
    if (bytes.empty()) continue;
    const auto id = static_cast<int32_t>(i);
    PlainTextState state = PlainTextState::kBoundary;
    size_t num_characters = 0, last_boundary = 0, position = 0;
    for (; position < bytes.size() && NextPlainText(state, static_cast<uint8_t>(bytes[position])); ++position) {
      if (state != PlainTextState::kBoundary) continue;
      ++num_characters;
      last_boundary = position + 1;
    }
    if (position == bytes.size()) {
      if (last_boundary < bytes.size()) ++num_characters;
      plain.push_back({bytes, id});
      SetBits(masks_.back(), std::span(&id, 1));
      if (num_characters <= kMaxCharacters) SetBits(masks_[num_characters], std::span(&id, 1));
    } else {
      rest.push_back({bytes, id});
      if (num_characters <= kMaxCharacters) suffixes[num_characters].push_back({bytes.substr(last_boundary), id});
    }
    if (num_characters > kMaxCharacters) long_tokens.push_back({bytes, id});
  }
  for (size_t n = 1; n <= kMaxCharacters; ++n) {
    for (size_t word = 0; word < masks_[n].size(); ++word) masks_[n][word] |= masks_[n - 1][word];
  }
  plain_ = TokenTrie(std::move(plain));
  rest_ = TokenTrie(std::move(rest));
  long_tokens_ = TokenTrie(std::move(long_tokens));
  for (std::vector<TokenTrie::Token>& tokens : suffixes) suffixes_.emplace_back(std::move(tokens));
}

}  // namespace vllm
