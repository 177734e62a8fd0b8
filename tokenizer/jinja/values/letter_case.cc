#include "tokenizer/jinja/values/letter_case.h"

#include <utf8proc.h>

#include <array>

#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

constexpr char32_t kSharpS = 0xdf, kDottedCapitalI = 0x130, kApostropheN = 0x149;
constexpr char32_t kIota = 0x3b9, kIotaSubscript = 0x345, kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2;

utf8proc_category_t CategoryOf(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
char32_t SimpleUpper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t SimpleLower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t SimpleTitle(char32_t c) { return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || CategoryOf(c) == UTF8PROC_CATEGORY_LT; }

// Returns true if `c` has the property Case_Ignorable: nonspacing and enclosing marks, modifiers, format characters,
// and punctuation that occurs inside words.
bool IsCaseIgnorable(char32_t c) {
  switch (CategoryOf(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      static constexpr std::u32string_view kInsideWords =
          U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
      return kInsideWords.find(c) != kInsideWords.npos;
  }
}

// Returns the full case folding, which has one to three code points.
std::u32string Fold(char32_t c) {
  std::array<utf8proc_int32_t, 4> folded{};
  const auto size = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded.data(), folded.size(),
                                            UTF8PROC_CASEFOLD, nullptr);
  return std::u32string(folded.begin(), folded.begin() + size);
}

// utf8proc converts a code point to exactly one upper-case code point. If Python's upper case of a letter is longer
// ("ß" -> "SS"), it is the upper case of the letter's case folding ("ss").
void AppendUpper(char32_t c, std::string& out) {
  if (c < 0x80 || CategoryOf(c) == UTF8PROC_CATEGORY_LU) return AppendCodePoint(SimpleUpper(c), out);
  const std::u32string folding = Fold(c);
  if (folding.size() < 2) return AppendCodePoint(SimpleUpper(c), out);
  for (const char32_t part : folding) AppendCodePoint(SimpleUpper(part), out);
}

void AppendTitle(char32_t c, std::string& out) {
  const char32_t title = SimpleTitle(c);
  if ((title != c && c != kSharpS) || CategoryOf(c) != UTF8PROC_CATEGORY_LL) return AppendCodePoint(title, out);
  if (c == kApostropheN) return AppendUpper(c, out);  // its folding starts with an apostrophe, which has no case
  bool is_first = true;
  for (const char32_t part : Fold(c)) {
    AppendCodePoint(is_first ? SimpleTitle(part) : part == kIota ? kIotaSubscript : part, out);
    is_first = false;
  }
}

bool EndsCased(std::string_view text) {
  while (!text.empty()) {
    const size_t last = LastCodePoint(text);
    size_t position = last;
    const char32_t c = NextCodePoint(text, position);
    if (!IsCaseIgnorable(c)) return IsCased(c);
    text = text.substr(0, last);
  }
  return false;
}

bool StartsCased(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (!IsCaseIgnorable(c)) return IsCased(c);
  }
  return false;
}

void AppendLower(char32_t c, std::string_view before, std::string_view after, std::string& out) {
  if (c == kDottedCapitalI) {
    out += "i\xcc\x87";
  } else if (c == kCapitalSigma && EndsCased(before) && !StartsCased(after)) {
    AppendCodePoint(kFinalSigma, out);  // at the end of a word
  } else {
    AppendCodePoint(SimpleLower(c), out);
  }
}

// Calls convert(code point, text before it, text after it, out) for each code point, and returns `out`.
template <typename Convert>
std::string Converted(std::string_view text, Convert convert) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const std::string_view before = text.substr(0, i);
    const char32_t c = NextCodePoint(text, i);
    convert(c, before, text.substr(i), result);
  }
  return result;
}

}  // namespace

bool IsAlpha(char32_t c) {
  switch (CategoryOf(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

// Python uses the derived properties Uppercase and Lowercase, and so does utf8proc. Their Unicode versions may differ:
// utf8proc 2.8 (Unicode 15) counts U+10FC, U+A7F2..U+A7F4 and U+AB69 as lower case, but Python 3.11 (Unicode 14) does
// not.
bool IsUpper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool IsLower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }

std::string ToUpper(std::string_view text) {
  return Converted(text, [](char32_t c, std::string_view, std::string_view, std::string& out) { AppendUpper(c, out); });
}

std::string ToLower(std::string_view text) { return Converted(text, AppendLower); }

std::string CaseFold(std::string_view text) {
  return Converted(text, [](char32_t c, std::string_view, std::string_view, std::string& out) {
    for (const char32_t part : Fold(c)) AppendCodePoint(part, out);
  });
}

std::string Capitalize(std::string_view text) {
  return Converted(text, [](char32_t c, std::string_view before, std::string_view after, std::string& out) {
    if (before.empty()) {
      AppendTitle(c, out);
    } else {
      AppendLower(c, before, after, out);
    }
  });
}

std::string TitleCase(std::string_view text) {
  bool in_word = false;
  return Converted(text, [&](char32_t c, std::string_view before, std::string_view after, std::string& out) {
    if (in_word) {
      AppendLower(c, before, after, out);
    } else {
      AppendTitle(c, out);
    }
    in_word = IsCased(c);
  });
}

std::string SwapCase(std::string_view text) {
  return Converted(text, [](char32_t c, std::string_view before, std::string_view after, std::string& out) {
    if (IsUpper(c)) {
      AppendLower(c, before, after, out);
    } else if (IsLower(c)) {
      AppendUpper(c, out);
    } else {
      AppendCodePoint(c, out);
    }
  });
}

}  // namespace vllm::tokenizer::jinja
