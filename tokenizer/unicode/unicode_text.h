// Lower case, grapheme borders, normalization forms, and walking over a text character by character.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tokenizer/unicode/utf8.h"

namespace vllm {

// Appends the lower case of one character, without regard to what stands around it.
void AppendLowercase(char32_t code_point, std::string& out);

// End of the extended grapheme cluster that starts at `begin`. REQUIRES: begin < text.size(), text is valid UTF-8.
size_t GraphemeEnd(std::string_view text, size_t begin);

// Replaces text by what change(code_point, out) appends for each of its characters.
template <typename Change>
void ForEachCharacter(std::string& text, Change change) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    change(code_point, out);
    position += length;
  }
  text = std::move(out);
}

// The Unicode normalization forms, by utf8proc's tables as far as Unicode 9 goes, which is what the reference knows.
// Unlike utf8proc_map this is O(n log n) on any text: utf8proc orders combining marks by exchanging neighbours, which
// on a hostile run of marks is quadratic.
enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// REQUIRES: text is valid UTF-8; it still is afterwards.
void NormalizeUnicode(UnicodeForm form, std::string& text);

}  // namespace vllm
