// Merging a long word window by window, so that time is linear in its length and work space a window's.
// Pure functions, any thread.
//
// Why that is exact, whatever the merges are: as long as no merge crosses a border, the two sides of it merge as if
// each were alone, for the pair merged next is the best of its side too. So the first merge to cross a border between
// two tokens is seen already where these two stand alone, and a row of tokens, each of which is what its own symbols
// merge to, is what the whole merges to as soon as each two neighbours are what the two of them merge to. Two windows
// with a token in common (same place, same symbols) therefore make one row there: the tokens of the first up to it, of
// the second from it on; every two neighbours stood together in one of the windows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

// A token of a window: the symbols [begin, end), counted from the start of the window in a unit of the caller's.
struct WindowToken {
  uint32_t begin;
  uint32_t end;
  int32_t id;
};

// encode(shift, tokens) moves the window on by `shift`, fills it to `window_size` again and appends the tokens it
// merges to; it returns whether the window reaches the end of the word. append(token) gets the tokens of the word in
// order, with places that count from the start of some window. False, and then what was appended is worth nothing: two
// windows have no token in common, or a token is too long for the window.
// REQUIRES: window_size >= 4. O(length of the word), where `encode` is linear in the windows.
template <typename Encode, typename Append>
bool MergeInWindows(size_t window_size, Encode encode, Append append) {
  std::vector<WindowToken> before;  // of the last window, from the border on where this one starts
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
    // The next window starts well before the end of this one, where tokens may still be cut short.
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

}  // namespace vllm
