// CasedScan of word_scans.h: the expressions that tell capitals from small letters.
#include "tokenizer/patterns/scanner_steps.h"
#include "tokenizer/patterns/word_scans.h"

namespace vllm {
namespace {

constexpr size_t kFails = static_cast<size_t>(-1);

// Capitals*Small+ at `position`, where letters without case and marks are both. Capitals* takes all it can and then
// gives back as little as Small+ needs: up to the last character that is both.
size_t SmallWordEnd(std::string_view text, size_t position) {
  const UnicodeTable& table = UnicodeTable::Get();
  size_t last_both = kFails;
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

// Capitals+Small* at `position`.
size_t CapitalWordEnd(std::string_view text, size_t position) {
  const size_t end = RunEnd(text, position, kUpperCase);
  return end > position ? RunEnd(text, end, kLowerCase) : kFails;
}

// Any one character but a line break, letter or number may stand in front of a word.
size_t WordEnd(std::string_view text, size_t position, const ScannedChar& c) {
  const bool may_lead = (c.classes & (kNewline | kLetter | kNumber)) == 0;
  const size_t after = position + c.length;
  for (const auto word_end : {SmallWordEnd, CapitalWordEnd}) {
    if (may_lead) {
      if (const size_t end = word_end(text, after); end != kFails) return end;
    }
    if ((c.classes & (kUpperCase | kLowerCase)) != 0) {
      if (const size_t end = word_end(text, position); end != kFails) return end;
    }
  }
  return kFails;
}

}  // namespace

template <int kMaxDigits, bool kContractions>
size_t CasedScan(std::string_view text, size_t position) {
  const ScannedChar c = CharAt(text, position);
  if (const size_t end = WordEnd(text, position, c); end != kFails) {
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
template size_t CasedScan<1, false>(std::string_view, size_t);
template size_t CasedScan<1, true>(std::string_view, size_t);
template size_t CasedScan<3, true>(std::string_view, size_t);

}  // namespace vllm
