// Text transformations that need Unicode tables: lower case, grapheme clusters and normalization forms.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

// Appends the lowercase form of one character, without regard to its context.
void AppendLowercase(char32_t code_point, std::string& out);

// Returns the end of the extended grapheme cluster that starts at `begin`. REQUIRES: begin < text.size(), text is valid
// UTF-8.
size_t GraphemeEnd(std::string_view text, size_t begin);

// Calls change(code_point, out) for each character of `text` and replaces `text` with the contents of `out`.
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

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// Normalizes `text` with utf8proc's tables. Code points newer than Unicode 9 are left unchanged, as in Hugging Face
// `tokenizers`. O(n log n) for any text. utf8proc_map would take quadratic time on a hostile run of combining marks,
// because it sorts them with a bubble sort. REQUIRES: text is valid UTF-8. The result is valid UTF-8 too.
void NormalizeUnicode(UnicodeForm form, std::string& text);

}  // namespace vllm::tokenizer
