#include "tokenizer/patterns/word_scanner.h"

#include <cstdint>
#include <string>

#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

struct ScannedChar {
  char32_t code_point = 0;
  size_t length = 0;     // 0 at the end of the text
  uint16_t classes = 0;  // CharClass bits
};

ScannedChar CharAt(std::string_view text, size_t position) {
  if (position >= text.size()) return {};
  const auto [code_point, length] = CodePointAt(text, position);
  return {code_point, length, UnicodeTable::Get().ClassOf(code_point)};
}

constexpr uint16_t kNotSymbol = kSpace | kLetter | kNumber;

// [^\s\p{L}\p{N}]
bool IsSymbol(const ScannedChar& c) { return c.length != 0 && (c.classes & kNotSymbol) == 0; }

// Returns the end of the run of characters that have one of `classes`.
size_t RunEnd(std::string_view text, size_t position, uint16_t classes) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (!table.Is(code_point, classes)) break;
    position += length;
  }
  return position;
}

// Returns the end of the run of characters that have none of `classes`.
size_t RunEndWithout(std::string_view text, size_t position, uint16_t classes) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (table.Is(code_point, classes)) break;
    position += length;
  }
  return position;
}

// Returns the end of the match of \p{N}{1,max_digits}, or `position` if no number starts there.
size_t NumberEnd(std::string_view text, size_t position, int max_digits) {
  for (int digits = 0; digits < max_digits; ++digits) {
    const ScannedChar c = CharAt(text, position);
    if ((c.classes & kNumber) == 0) break;
    position += c.length;
  }
  return position;
}

// \s+(?!\S)|\s+ : a run of whitespace without its last character, which is left for the next match. A run of one
// character or a run at the end of the text is matched whole.
size_t SpaceEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kSpace);
  if (end == text.size()) return end;
  const size_t last = PreviousCodePoint(text, end);
  return last > position ? last : end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line break if the run has one, otherwise the same as SpaceEnd.
size_t LineOrSpaceEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kSpace);
  for (size_t last = end; last > position; --last) {
    if (text[last - 1] == '\n' || text[last - 1] == '\r') return last;
  }
  return SpaceEnd(text, position);
}

// Returns the length of the match of 's|'t|'re|'ve|'m|'ll|'d at `position`, or 0. If case is ignored, U+017F also
// matches s.
size_t ContractionLength(std::string_view text, size_t position, bool ignore_case) {
  if (position >= text.size() || text[position] != '\'') return 0;
  const auto letter = [&](size_t offset) -> char {
    if (position + offset >= text.size()) return '\0';
    const char c = text[position + offset];
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = letter(2);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
  if (ignore_case && text.substr(position + 1, 2) == "\xC5\xBF") return 3;
  return 0;
}

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

// Llama 3 (kMaxDigits 3), Qwen 2 (kMaxDigits 1) and similar models. kTakesLastSpace: whitespace at the end of the text
// is one match even if it contains line breaks, as in tiktoken's cl100k_base.
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

// Qwen 3.5: like Llama3Scan<1, false>, but marks count as letters.
size_t MarkedWordScan(std::string_view text, size_t position) {
  constexpr uint16_t kWordPart = kLetter | kRegexMark;
  constexpr uint16_t kNonSymbol = kNotSymbol | kRegexMark;
  const auto is_symbol = [](const ScannedChar& c) { return c.length != 0 && (c.classes & kNonSymbol) == 0; };
  if (const size_t length = ContractionLength(text, position, true)) return position + length;
  const ScannedChar c = CharAt(text, position);
  const size_t after = position + c.length;
  if (c.classes & kWordPart) return RunEnd(text, after, kWordPart);
  if (c.classes & kNumber) return after;
  const ScannedChar next = CharAt(text, after);
  if ((c.classes & kNewline) == 0 && (next.classes & kWordPart)) return RunEnd(text, after + next.length, kWordPart);
  if (is_symbol(c) || (c.code_point == ' ' && is_symbol(next))) {
    return RunEnd(text, RunEndWithout(text, after, kNonSymbol), kNewline);
  }
  return LineOrSpaceEnd(text, position);
}

constexpr size_t kNoMatch = static_cast<size_t>(-1);

// Upper*Lower+ at `position`. Marks and letters without case belong to both classes. Upper* is greedy and backtracks
// only as far as Lower+ needs. So if no letter is lowercase only, the match ends after the last character of both
// classes.
size_t SmallWordEnd(std::string_view text, size_t position) {
  const UnicodeTable& table = UnicodeTable::Get();
  size_t last_both = kNoMatch;
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    const uint16_t classes = table.ClassOf(code_point);
    if ((classes & kUpperCase) == 0) {
      if ((classes & kLowerCase) != 0) return RunEnd(text, position + length, kLowerCase);
      break;
    }
    position += length;
    if ((classes & kLowerCase) != 0) last_both = position;
  }
  return last_both;
}

// Upper+Lower* at `position`.
size_t CapitalWordEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kUpperCase);
  return end > position ? RunEnd(text, end, kLowerCase) : kNoMatch;
}

// A word may start with one character that is not a line break, letter or number.
size_t WordEnd(std::string_view text, size_t position, const ScannedChar& c) {
  const bool may_lead = (c.classes & (kNewline | kLetter | kNumber)) == 0;
  const size_t after = position + c.length;
  for (const auto word_end : {SmallWordEnd, CapitalWordEnd}) {
    if (may_lead) {
      if (const size_t end = word_end(text, after); end != kNoMatch) return end;
    }
    if ((c.classes & (kUpperCase | kLowerCase)) != 0) {
      if (const size_t end = word_end(text, position); end != kNoMatch) return end;
    }
  }
  return kNoMatch;
}

// o200k_base (kMaxDigits 3, kContractions) and tekken (kMaxDigits 1, no contractions): splits a word where an uppercase
// letter follows a lowercase one.
template <int kMaxDigits, bool kContractions>
size_t CasedScan(std::string_view text, size_t position) {
  const ScannedChar c = CharAt(text, position);
  if (const size_t end = WordEnd(text, position, c); end != kNoMatch) {
    return kContractions ? end + ContractionLength(text, end, true) : end;
  }
  if (c.classes & kNumber) return NumberEnd(text, position, kMaxDigits);
  const size_t after = position + c.length;
  if (IsSymbol(c) || (c.code_point == ' ' && IsSymbol(CharAt(text, after)))) {
    size_t end = RunEndWithout(text, after, kNotSymbol);
    while (end < text.size() && (text[end] == '\r' || text[end] == '\n' || text[end] == '/')) ++end;
    return end;
  }
  return LineOrSpaceEnd(text, position);
}

// The main regular expression of DeepSeek V3, which leaves some characters unmatched.
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

// BLOOM: an optional space, then a run of characters other than whitespace and the signs listed here.
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

// \p{N}{1,kMaxDigits}
template <int kMaxDigits>
size_t NumberScan(std::string_view text, size_t position) {
  return NumberEnd(text, position, kMaxDigits);
}

// [0-9][0-9][0-9]
size_t ThreeDigitsScan(std::string_view text, size_t position) {
  if (text.size() - position < 3) return position;
  for (size_t i = position; i < position + 3; ++i) {
    if (!(text[i] >= '0' && text[i] <= '9')) return position;
  }
  return position + 3;
}

// [\r\n]
size_t LineBreakScan(std::string_view text, size_t position) {
  return text[position] == '\r' || text[position] == '\n' ? position + 1 : position;
}

// \s?\p{L}+
size_t SpacedLettersScan(std::string_view text, size_t position) { return SpacedRunEnd(text, position, kLetter); }

// \s?\p{P}+
size_t SpacedPunctuationScan(std::string_view text, size_t position) {
  return SpacedRunEnd(text, position, kRegexPunctuation);
}

// [一-龥぀-ゟ゠-ヿ]+
size_t HanKanaScan(std::string_view text, size_t position) {
  return RangeRunEnd(text, position,
                     [](char32_t c) { return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF); });
}

// [一-龥ࠀ-一가-퟿]+
size_t EastAsianScan(std::string_view text, size_t position) {
  return RangeRunEnd(text, position, [](char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x800 && c <= 0x4E00) || (c >= 0xAC00 && c <= 0xD7FF);
  });
}

#define CASED_WORD "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL_WORD "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

constexpr WordScanner kScanners[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Gpt2Scan},
    // Llama 3, then Qwen 2 with single digits.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3Scan<3, false>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3Scan<1, false>},
    // Phi-4, GLM-4 and Ling write these two in a newer syntax.
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Llama3Scan<3, false>},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Llama3Scan<1, false>},
    // Qwen 3.5.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     MarkedWordScan},
    // tiktoken's cl100k_base. Its {1,3}+ matches at most three digits; in Oniguruma's syntax that is (?>\p{N}{1,3}).
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Llama3Scan<3, true>},
    // o200k_base, gpt-oss and Llama 4; then a variant with single digits; then tekken.
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD
     "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<3, true>},
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD
     "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<1, true>},
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD "+|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<1, false>},
    // DeepSeek V3 and R1, applied after the regexes for numbers and for Han and kana.
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     DeepSeekScan},
    {"[一-龥぀-ゟ゠-ヿ]+", HanKanaScan},
    {"[一-龥ࠀ-一가-퟿]+", EastAsianScan},
    {R"(\p{N}{1,3})", NumberScan<3>},
    {R"(\p{N})", NumberScan<1>},
    {"[0-9][0-9][0-9]", ThreeDigitsScan},
    {R"([\r\n])", LineBreakScan},
    {R"(\s?\p{L}+)", SpacedLettersScan},
    {R"(\s?\p{P}+)", SpacedPunctuationScan},
    {R"( ?[^(\s|[.,!?…。，、।۔،])]+)", BloomScan},
};

#undef CASED_WORD
#undef SMALL_WORD

}  // namespace

const WordScanner* FindWordScanner(std::string_view regex) {
  std::string escaped;
  for (const char c : regex) {
    if (c == '\r' || c == '\n') {
      escaped += c == '\r' ? "\\r" : "\\n";
    } else {
      escaped += c;
    }
  }
  for (const WordScanner& scanner : kScanners) {
    if (scanner.regex == escaped) return &scanner;
  }
  return nullptr;
}

std::span<const WordScanner> AllWordScanners() { return kScanners; }

const WordScanner& Gpt2WordScanner() { return kScanners[0]; }

size_t ScannerPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const size_t batch_end = matches.size() + kBatch;
  bool in_gap = false;
  size_t position = from;
  while (position < text.size()) {
    const size_t end = scanner_.match_end(text, position);
    if (end > position) {
      matches.push_back({position, end, true});
      in_gap = false;
      position = end;
      if (matches.size() >= batch_end) break;
      continue;
    }
    const size_t next = position + CodePointAt(text, position).length;
    if (in_gap) {
      matches.back().end = next;
    } else {
      matches.push_back({position, next, false});
    }
    in_gap = true;
    position = next;
  }
  return position;
}

}  // namespace vllm::tokenizer
