#include "tokenizer/unicode/text_walk.h"

#include <utf8proc.h>

namespace vllm {

namespace {

// Letters of Unicode 16 and 17, which the reference knows and an older utf8proc does not.
char32_t NewerLowercase(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  if (c == 0xA7CB) return 0x264;
  if (c == 0xA7DC) return 0x19B;
  if (c == 0x1C89 || c == 0xA7CC || c == 0xA7CE || c == 0xA7D2 || c == 0xA7D4 || c == 0xA7DA) return c + 1;
  return c;
}

}  // namespace

void AppendLowercase(char32_t code_point, std::string& out) {
  // The only character whose lower case is two.
  if (code_point == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
  AppendCodePoint(lower != code_point ? lower : NewerLowercase(code_point), out);
}

size_t GraphemeEnd(std::string_view text, size_t begin) {
  CodePoint last = CodePointAt(text, begin);
  size_t end = begin + last.length;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const CodePoint next = CodePointAt(text, end);
    if (last.value < 0x80 && next.value < 0x80) {
      if (!(last.value == '\r' && next.value == '\n')) break;
    } else if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                                static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    end += next.length;
    last = next;
  }
  return end;
}

}  // namespace vllm
