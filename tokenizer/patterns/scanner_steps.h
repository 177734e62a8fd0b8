// The steps that the hand-written word scanners share. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

struct ScannedChar {
  char32_t code_point = 0;
  size_t length = 0;     // 0 at the end of the text
  uint16_t classes = 0;  // CharClass bits
};

inline ScannedChar CharAt(std::string_view text, size_t position) {
  if (position >= text.size()) return {};
  const auto [code_point, length] = CodePointAt(text, position);
  return {code_point, length, UnicodeTable::Get().ClassOf(code_point)};
}

inline constexpr uint16_t kNotSymbol = kSpace | kLetter | kNumber;

// [^\s\p{L}\p{N}]
inline bool IsSymbol(const ScannedChar& c) { return c.length != 0 && (c.classes & kNotSymbol) == 0; }

// End of the run of characters that have one of `classes`.
size_t RunEnd(std::string_view text, size_t position, uint16_t classes);
// End of the run of characters that have none of `classes`.
size_t RunEndWithout(std::string_view text, size_t position, uint16_t classes);
// \p{N}{1,max}. REQUIRES: a number stands at `position`.
size_t NumberEnd(std::string_view text, size_t position, int max_digits);

// \s+(?!\S)|\s+ : a run of white space leaves its last character to the word that follows, unless it has only one.
size_t SpaceEnd(std::string_view text, size_t position);
// \s*[\r\n]+|\s+(?!\S)|\s+ : but up to the last line break of the run, if there is one.
size_t LineOrSpaceEnd(std::string_view text, size_t position);

// Length of 's|'t|'re|'ve|'m|'ll|'d at `position`, 0 when there is none. Without regard to case U+017F is an s too.
size_t ContractionLength(std::string_view text, size_t position, bool ignore_case);

}  // namespace vllm
