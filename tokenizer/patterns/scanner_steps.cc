#include "tokenizer/patterns/scanner_steps.h"

namespace vllm {

size_t RunEnd(std::string_view text, size_t position, uint16_t classes) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (!table.Is(code_point, classes)) break;
    position += length;
  }
  return position;
}

size_t RunEndWithout(std::string_view text, size_t position, uint16_t classes) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    if (table.Is(code_point, classes)) break;
    position += length;
  }
  return position;
}

size_t NumberEnd(std::string_view text, size_t position, int max_digits) {
  for (int digits = 0; digits < max_digits; ++digits) {
    const ScannedChar c = CharAt(text, position);
    if ((c.classes & kNumber) == 0) break;
    position += c.length;
  }
  return position;
}

size_t SpaceEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kSpace);
  if (end == text.size()) return end;
  const size_t last = PreviousCodePoint(text, end);
  return last > position ? last : end;
}

size_t LineOrSpaceEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kSpace);
  for (size_t last = end; last > position; --last) {
    if (text[last - 1] == '\n' || text[last - 1] == '\r') return last;
  }
  return SpaceEnd(text, position);
}

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

}  // namespace vllm
