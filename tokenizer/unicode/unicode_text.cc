#include "tokenizer/unicode/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// Returns the lowercase form of a letter added in Unicode 16 or 17, and other characters unchanged. Hugging Face
// `tokenizers` knows these letters, but older releases of utf8proc do not.
char32_t NewerLowercase(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  if (c == 0xA7CB) return 0x264;
  if (c == 0xA7DC) return 0x19B;
  if (c == 0x1C89 || c == 0xA7CC || c == 0xA7CE || c == 0xA7D2 || c == 0xA7D4 || c == 0xA7DA) return c + 1;
  return c;
}

bool IsNfc(std::string_view text) {
  const UnicodeTable& table = UnicodeTable::Get();
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (table.Is(code_point, kNfcUnstable)) return false;
    position += length;
  }
  return true;
}

void Decompose(std::string_view text, utf8proc_option_t options, std::vector<utf8proc_int32_t>& out) {
  utf8proc_int32_t buffer[32];  // the longest decomposition, that of U+FDFA, has 18 code points
  int boundary_class = 0;
  const UnicodeTable& table = UnicodeTable::Get();
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    position += length;
    if (!table.Is(code_point, kUnicode9)) {
      out.push_back(static_cast<utf8proc_int32_t>(code_point));
      continue;
    }
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), buffer,
                                                           std::size(buffer), options, &boundary_class);
    for (utf8proc_ssize_t i = 0; i < count; ++i) out.push_back(buffer[i]);
  }
}

// Sorts every run of combining marks by combining class.
void OrderMarks(std::vector<utf8proc_int32_t>& code_points) {
  const UnicodeTable& table = UnicodeTable::Get();
  const auto combining_class = [&table](utf8proc_int32_t c) {
    return table.Is(static_cast<char32_t>(c), kUnicode9) ? int{utf8proc_get_property(c)->combining_class} : 0;
  };
  for (auto begin = code_points.begin(); begin != code_points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, code_points.end(), [&](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

void AppendLowercase(char32_t code_point, std::string& out) {
  // The only character whose lowercase form has two code points.
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

void NormalizeUnicode(UnicodeForm form, std::string& text) {
  if (IsAscii(text) || (form == UnicodeForm::kNfc && IsNfc(text))) return;
  const bool compose = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  const bool compatibility = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (compatibility) options |= UTF8PROC_COMPAT;
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  Decompose(text, static_cast<utf8proc_option_t>(options), code_points);
  OrderMarks(code_points);
  if (compose) {
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(
        code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), static_cast<utf8proc_option_t>(options));
    code_points.resize(static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0)));
  }
  text.clear();
  for (const utf8proc_int32_t c : code_points) AppendCodePoint(static_cast<char32_t>(c), text);
}

}  // namespace vllm::tokenizer
