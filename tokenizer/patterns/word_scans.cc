#include "tokenizer/patterns/word_scans.h"

#include "tokenizer/patterns/scanner_steps.h"

namespace vllm {
namespace {

bool IsAsciiLetter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

size_t AsciiLettersEnd(std::string_view text, size_t position) {
  while (position < text.size() && IsAsciiLetter(static_cast<unsigned char>(text[position]))) ++position;
  return position;
}

template <typename IsIn>
size_t RangeRunEnd(std::string_view text, size_t position, IsIn is_in) {
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (!is_in(code_point)) break;
    position += length;
  }
  return position;
}

size_t SpacedRunEnd(std::string_view text, size_t position, uint16_t classes) {
  const ScannedChar c = CharAt(text, position);
  const size_t start = (c.classes & kSpace) != 0 ? position + c.length : position;
  const size_t end = RunEnd(text, start, classes);
  return end > start ? end : position;
}

}  // namespace

size_t Gpt2Scan(std::string_view text, size_t position) {
  if (const size_t length = ContractionLength(text, position, false)) return position + length;
  ScannedChar c = CharAt(text, position);
  size_t start = position;
  if (c.code_point == ' ') {
    const ScannedChar next = CharAt(text, position + 1);
    if (next.length != 0 && (next.classes & kSpace) == 0) {
      c = next;
      start = position + 1;
    }
  }
  if (c.classes & kLetter) return RunEnd(text, start + c.length, kLetter);
  if (c.classes & kNumber) return RunEnd(text, start + c.length, kNumber);
  if (c.classes & kSpace) return SpaceEnd(text, position);
  return RunEndWithout(text, start + c.length, kNotSymbol);
}

template <int kMaxDigits, bool kTakesLastSpace>
size_t Llama3Scan(std::string_view text, size_t position) {
  if (const size_t length = ContractionLength(text, position, true)) return position + length;
  const ScannedChar c = CharAt(text, position);
  const size_t after = position + c.length;
  if (c.classes & kLetter) return RunEnd(text, after, kLetter);
  if (c.classes & kNumber) return NumberEnd(text, position, kMaxDigits);
  const ScannedChar next = CharAt(text, after);
  if ((c.classes & kNewline) == 0 && (next.classes & kLetter)) return RunEnd(text, after + next.length, kLetter);
  if (IsSymbol(c) || (c.code_point == ' ' && IsSymbol(next))) {
    return RunEnd(text, RunEndWithout(text, after, kNotSymbol), kNewline);
  }
  if (kTakesLastSpace && RunEnd(text, position, kSpace) == text.size()) return text.size();
  return LineOrSpaceEnd(text, position);
}
template size_t Llama3Scan<1, false>(std::string_view, size_t);
template size_t Llama3Scan<3, false>(std::string_view, size_t);
template size_t Llama3Scan<3, true>(std::string_view, size_t);

size_t MarkedWordScan(std::string_view text, size_t position) {
  constexpr uint16_t kWordPart = kLetter | kRegexMark;
  constexpr uint16_t kNotMarklessSymbol = kNotSymbol | kRegexMark;
  const auto is_symbol = [](const ScannedChar& c) { return c.length != 0 && (c.classes & kNotMarklessSymbol) == 0; };
  if (const size_t length = ContractionLength(text, position, true)) return position + length;
  const ScannedChar c = CharAt(text, position);
  const size_t after = position + c.length;
  if (c.classes & kWordPart) return RunEnd(text, after, kWordPart);
  if (c.classes & kNumber) return after;
  const ScannedChar next = CharAt(text, after);
  if ((c.classes & kNewline) == 0 && (next.classes & kWordPart)) return RunEnd(text, after + next.length, kWordPart);
  if (is_symbol(c) || (c.code_point == ' ' && is_symbol(next))) {
    return RunEnd(text, RunEndWithout(text, after, kNotMarklessSymbol), kNewline);
  }
  return LineOrSpaceEnd(text, position);
}

size_t DeepSeekScan(std::string_view text, size_t position) {
  constexpr uint16_t kWordPart = kLetter | kRegexMark;
  constexpr uint16_t kSign = kRegexPunctuation | kRegexSymbol;
  const ScannedChar c = CharAt(text, position);
  const size_t after = position + c.length;
  const ScannedChar next = CharAt(text, after);
  const bool is_ascii_sign = c.code_point < 0x80 && (c.classes & kSign) != 0;
  if (is_ascii_sign && IsAsciiLetter(next.code_point)) return AsciiLettersEnd(text, after);
  if ((c.classes & kWordPart) != 0 || ((c.classes & (kNewline | kSign)) == 0 && (next.classes & kWordPart) != 0)) {
    return RunEnd(text, after, kWordPart);
  }
  if ((c.classes & kSign) != 0 || (c.code_point == ' ' && (next.classes & kSign) != 0)) {
    return RunEnd(text, RunEnd(text, after, kSign), kNewline);
  }
  return (c.classes & kSpace) != 0 ? LineOrSpaceEnd(text, position) : position;
}

size_t BloomScan(std::string_view text, size_t position) {
  const auto is_in = [](char32_t c) {
    switch (c) {
      case '(':
      case ')':
      case '|':
      case '.':
      case ',':
      case '!':
      case '?':
      case 0x2026:
      case 0x3002:
      case 0xFF0C:
      case 0x3001:
      case 0x964:
      case 0x6D4:
      case 0x60C:
        return false;
      default:
        return !UnicodeTable::Get().Is(c, kSpace);
    }
  };
  const size_t start = text[position] == ' ' ? position + 1 : position;
  const size_t end = RangeRunEnd(text, start, is_in);
  return end > start ? end : position;
}

template <int kMaxDigits>
size_t NumberScan(std::string_view text, size_t position) {
  return NumberEnd(text, position, kMaxDigits);
}
template size_t NumberScan<1>(std::string_view, size_t);
template size_t NumberScan<3>(std::string_view, size_t);

size_t ThreeDigitsScan(std::string_view text, size_t position) {
  if (text.size() - position < 3) return position;
  for (size_t i = position; i < position + 3; ++i) {
    if (!(text[i] >= '0' && text[i] <= '9')) return position;
  }
  return position + 3;
}

size_t LineBreakScan(std::string_view text, size_t position) {
  return text[position] == '\r' || text[position] == '\n' ? position + 1 : position;
}

size_t SpacedLettersScan(std::string_view text, size_t position) { return SpacedRunEnd(text, position, kLetter); }

size_t SpacedPunctuationScan(std::string_view text, size_t position) {
  return SpacedRunEnd(text, position, kRegexPunctuation);
}

size_t HanKanaScan(std::string_view text, size_t position) {
  return RangeRunEnd(text, position,
                     [](char32_t c) { return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF); });
}

size_t EastAsianScan(std::string_view text, size_t position) {
  return RangeRunEnd(text, position, [](char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x800 && c <= 0x4E00) || (c >= 0xAC00 && c <= 0xD7FF);
  });
}

}  // namespace vllm
