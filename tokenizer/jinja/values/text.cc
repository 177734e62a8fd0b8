#include "tokenizer/jinja/values/text.h"

#include <algorithm>
#include <cstring>

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

bool IsLineEnd(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
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
  const Utf8Step step = DecodeUtf8(text, position);
  const bool is_valid = step.kind == Utf8Step::Kind::kValid;
  position += is_valid ? step.length : 1;
  return is_valid ? step.code_point : char32_t{0xfffd};
}

size_t LastCodePoint(std::string_view text) {
  const size_t lowest = text.size() < 4 ? 0 : text.size() - 4;
  for (size_t i = text.size(); i-- > lowest;) {
    const Utf8Step step = DecodeUtf8(text, i);
    if (step.kind == Utf8Step::Kind::kValid && i + step.length == text.size()) return i;
  }
  return text.size() - 1;
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

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }

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
  // Find the first match in the reversed text, because std::string::rfind is quadratic on "aaaa...".
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

}  // namespace vllm::tokenizer::jinja
