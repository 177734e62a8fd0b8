#include "tokenizer/jinja/values/text.h"

#include <algorithm>
#include <cstring>

#include "tokenizer/jinja/values/letter_case.h"

namespace vllm::jinja {
namespace {

// Length of the well-formed sequence at `position`, or 0.
size_t SequenceLength(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size() - position) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Start of the last code point of a non-empty text.
size_t LastCodePoint(std::string_view text) {
  const size_t lowest = text.size() < 4 ? 0 : text.size() - 4;
  for (size_t i = text.size(); i-- > lowest;) {
    const size_t length = SequenceLength(text, i);
    if (length != 0 && i + length == text.size()) return i;
  }
  return text.size() - 1;
}

template <typename Predicate>
std::string_view StripLeftIf(std::string_view text, Predicate strip) {
  size_t position = 0;
  while (position < text.size()) {
    size_t next = position;
    if (!strip(NextCodePoint(text, next))) break;
    position = next;
  }
  return text.substr(position);
}

template <typename Predicate>
std::string_view StripRightIf(std::string_view text, Predicate strip) {
  while (!text.empty()) {
    const size_t last = LastCodePoint(text);
    size_t position = last;
    if (!strip(NextCodePoint(text, position))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::u32string Decode(std::string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size();) result += NextCodePoint(text, i);
  return result;
}

}  // namespace

char32_t NextCodePoint(std::string_view text, size_t& position) {
  const size_t length = SequenceLength(text, position);
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[position + i])); };
  char32_t result = 0xfffd;
  if (length == 1) result = byte(0);
  if (length == 2) result = (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
  if (length == 3) result = (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  if (length == 4) {
    result = (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
  position += std::max<size_t>(length, 1);
  return result;
}

void AppendCodePoint(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

size_t NumCodePoints(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) NextCodePoint(text, i);
  return count;
}

size_t CodePointOffset(std::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) NextCodePoint(text, position);
  return position;
}

bool IsValidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }

bool IsUpper(char32_t c) { return LowerOf(c) != c; }
bool IsLower(char32_t c) { return UpperOf(c) != c || c == 0xdf || c == 0xaa || c == 0xba; }

bool IsPrintable(char32_t c) {
  if (c < 0x7f) return c >= 0x20;
  if (c < 0xa1 || c == 0xad) return false;
  if (IsSpace(c)) return false;
  return !((c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           (c >= 0xd800 && c <= 0xf8ff) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000);
}

std::string_view StripLeft(std::string_view text) { return StripLeftIf(text, IsSpace); }
std::string_view StripRight(std::string_view text) { return StripRightIf(text, IsSpace); }

std::string_view StripLeft(std::string_view text, std::string_view chars) {
  const std::u32string set = Decode(chars);
  return StripLeftIf(text, [&](char32_t c) { return set.find(c) != set.npos; });
}

std::string_view StripRight(std::string_view text, std::string_view chars) {
  const std::u32string set = Decode(chars);
  return StripRightIf(text, [&](char32_t c) { return set.find(c) != set.npos; });
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t line_end = i;
    const char32_t c = NextCodePoint(text, i);
    if (!IsLineEnd(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, (keep_ends ? i : line_end) - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

size_t SearchCost(std::string_view text, std::string_view needle) {
  return (text.size() + needle.size()) * (needle.size() > 64 ? 16 : 2);
}

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t FindTextLast(std::string_view text, std::string_view needle) {
  // The first match in the mirrored text: std::string::rfind is quadratic on "aaaa...".
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string mirrored_needle(needle.rbegin(), needle.rend());
  const size_t found = FindText(mirrored, mirrored_needle);
  return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

std::string EscapeHtml(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace vllm::jinja
