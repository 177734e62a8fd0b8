// Merges a long word window by window. The scratch memory is proportional to the window and not to the word.
// A pure function, any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm::tokenizer {

// A token of a window. [begin, end) are offsets from the start of the window, in a unit that the caller chooses.
struct WindowToken {
  uint32_t begin;
  uint32_t end;
  int32_t id;
};

// encode(shift, tokens) moves the window forward by `shift`, refills it to `window_size`, merges it and appends its
// tokens to `tokens`. It returns true if the window reaches the end of the word. append(token) receives the tokens of
// the word in order; their offsets are relative to the start of the window that they come from. MergeInWindows returns
// false if two windows share no token or a token is too long for the window. The caller must then discard the tokens
// that it received. REQUIRES: window_size >= 4. O(length of the word) if `encode` is linear in the window.
//
// The result is exact for any merges. As long as no merge crosses a border, each side merges as if it were alone,
// because the next pair to merge is also the best pair of its side. So if two adjacent tokens stay separate when their
// symbols are merged alone, no merge crosses their border in a longer word either. Therefore a sequence of tokens is
// the result for a word if the symbols of every two adjacent tokens merge to exactly these two tokens. Two overlapping
// windows that share a token (same position, same symbols) can be joined there: take the tokens of the first window
// before the shared token, then the tokens of the second window from the shared token on. Any two adjacent tokens of
// the joined sequence were adjacent in one of the windows.
template <typename Encode, typename Append>
bool MergeInWindows(size_t window_size, Encode encode, Append append) {
  std::vector<WindowToken> before;  // tokens of the previous window from the start of this window on
  std::vector<WindowToken> tokens;
  uint32_t shift = 0;
  for (bool is_first = true;; is_first = false) {
    tokens.clear();
    const bool is_last = encode(shift, tokens);
    size_t joint = 0;
    if (!is_first) {
      size_t i = 0;
      while (i < before.size() && joint < tokens.size()) {
        if (before[i].begin == tokens[joint].begin && before[i].end == tokens[joint].end) break;
        if (before[i].begin <= tokens[joint].begin) {
          append(before[i++]);
        } else {
          ++joint;
        }
      }
      if (i == before.size() || joint == tokens.size()) return false;
    }
    // The next window starts well before the end of this one, because tokens near the end may be cut short.
    const auto is_early = [&](const WindowToken& token) { return token.begin < window_size / 4 * 3; };
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(joint);
    const auto cut = is_last ? tokens.end() : std::partition_point(first, tokens.end(), is_early);
    std::for_each(first, cut, append);
    if (is_last) return true;
    if (cut == first || cut == tokens.end()) return false;
    shift = cut->begin;
    before.clear();
    for (auto token = cut; token != tokens.end(); ++token) {
      before.push_back({token->begin - shift, token->end - shift, token->id});
    }
  }
}

}  // namespace vllm::tokenizer
