#include "tokenizer/word_scanner.h"

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

struct Char {
  char32_t code_point = 0;
  size_t length = 0;    // 0 at the end of the text
  uint8_t classes = 0;  // CharClass bits
};

Char At(std::string_view text, size_t position) {
  if (position >= text.size()) return {};
  const auto [code_point, length] = CodePointAt(text, position);
  return {code_point, length, UnicodeTable::Get().ClassOf(code_point)};
}

constexpr uint8_t kNotSymbol = kSpace | kLetter | kNumber;

bool IsSymbol(const Char& c) { return c.length != 0 && (c.classes & kNotSymbol) == 0; }

// End of the run of characters that have one of `classes`.
size_t RunEnd(std::string_view text, size_t position, uint8_t classes) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (!table.Is(code_point, classes)) break;
    position += length;
  }
  return position;
}

// End of the run of [^\s\p{L}\p{N}].
size_t SymbolRunEnd(std::string_view text, size_t position) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (table.Is(code_point, kNotSymbol)) break;
    position += length;
  }
  return position;
}

// \s+(?!\S)|\s+ : a run of white space leaves its last character to the word that follows, unless it has only one.
size_t SpaceEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kSpace);
  if (end == text.size()) return end;
  const size_t last = PreviousCodePoint(text, end);
  return last > position ? last : end;
}

// Length of 's|'t|'re|'ve|'m|'ll|'d at `position`, 0 when there is none. Without regard to case U+017F is an s too.
size_t ContractionLength(std::string_view text, size_t position, bool ignore_case) {
  if (text[position] != '\'') return 0;
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

size_t Gpt2MatchEnd(std::string_view text, size_t position) {
  if (const size_t length = ContractionLength(text, position, false)) return position + length;
  Char c = At(text, position);
  size_t start = position;
  if (c.code_point == ' ') {
    const Char next = At(text, position + 1);
    if (next.length != 0 && (next.classes & kSpace) == 0) {
      c = next;
      start = position + 1;
    }
  }
  if (c.classes & kLetter) return RunEnd(text, start + c.length, kLetter);
  if (c.classes & kNumber) return RunEnd(text, start + c.length, kNumber);
  if (c.classes & kSpace) return SpaceEnd(text, position);
  return SymbolRunEnd(text, start + c.length);
}

// The expression of Llama 3 and Qwen 2, which differ in how many digits a number takes.
template <int kMaxDigits>
size_t Llama3MatchEnd(std::string_view text, size_t position) {
  if (const size_t length = ContractionLength(text, position, true)) return position + length;
  const Char c = At(text, position);
  const size_t after = position + c.length;
  if (c.classes & kLetter) return RunEnd(text, after, kLetter);
  if (c.classes & kNumber) {
    size_t end = after;
    for (int digits = 1; digits < kMaxDigits; ++digits) {
      const Char next = At(text, end);
      if ((next.classes & kNumber) == 0) break;
      end += next.length;
    }
    return end;
  }
  const Char next = At(text, after);
  if ((c.classes & kNewline) == 0 && (next.classes & kLetter)) return RunEnd(text, after + next.length, kLetter);
  if (IsSymbol(c) || (c.code_point == ' ' && IsSymbol(next))) {
    return RunEnd(text, SymbolRunEnd(text, after), kNewline);
  }
  // \s*[\r\n]+ reaches to the last line break of the run.
  const size_t end = RunEnd(text, position, kSpace);
  for (size_t last = end; last > position; --last) {
    if (text[last - 1] == '\n' || text[last - 1] == '\r') return last;
  }
  return SpaceEnd(text, position);
}

constexpr WordScanner kScanners[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Gpt2MatchEnd},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3MatchEnd<3>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3MatchEnd<1>},
};

}  // namespace

const WordScanner* FindWordScanner(std::string_view regex) {
  for (const WordScanner& scanner : kScanners) {
    if (scanner.regex == regex) return &scanner;
  }
  return nullptr;
}

const WordScanner& Gpt2WordScanner() { return kScanners[0]; }

void ScannerPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  for (size_t position = 0; position < text.size();) {
    const size_t end = scanner_.match_end(text, position);
    matches.push_back({position, end, true});
    position = end;
  }
}

}  // namespace vllm
