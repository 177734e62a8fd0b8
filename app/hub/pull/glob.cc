#include "app/hub/pull/glob.h"

#include <cstddef>
#include <optional>
#include <string>

namespace vllm::app {
namespace {

// Matches one byte with the part of a pattern at `position`, which is not '*', and moves `position` behind this part.
// A '[' without its ']' is an ordinary byte.
bool MatchesOne(std::string_view pattern, size_t& position, char c) {
  const char first = pattern[position];
  if (first != '[') {
    ++position;
    return first == '?' || first == c;
  }
  size_t begin = position + 1;
  const bool is_negated = begin < pattern.size() && pattern[begin] == '!';
  if (is_negated) ++begin;
  // A ']' at the beginning of the set belongs to it.
  const size_t end = pattern.find(']', begin + 1);
  if (end == std::string_view::npos) {
    ++position;
    return c == '[';
  }
  bool is_in_set = false;
  for (size_t i = begin; i < end; ++i) {
    if (i + 2 < end && pattern[i + 1] == '-') {
      is_in_set = is_in_set || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      is_in_set = is_in_set || pattern[i] == c;
    }
  }
  position = end + 1;
  return is_in_set != is_negated;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text) {
  std::string below;
  if (pattern.ends_with('/')) {
    below = std::string(pattern) + "*";
    pattern = below;
  }
  size_t p = 0;
  size_t t = 0;
  // After a mismatch, the last '*' matches one byte more. Earlier ones never need to.
  std::optional<size_t> after_star;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_text = t;
    } else if (p < pattern.size() && MatchesOne(pattern, p, text[t])) {
      ++t;
    } else if (after_star) {
      p = *after_star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace vllm::app
