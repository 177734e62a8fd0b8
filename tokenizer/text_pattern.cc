#include "tokenizer/text_pattern.h"

#include "tokenizer/onig_pattern.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_scanner.h"

namespace vllm {

void LiteralPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  size_t done = 0;
  while (done < text.size()) {
    const size_t found = text.find(literal_, done);
    if (found == text.npos) break;
    if (found > done) matches.push_back({done, found, false});
    done = found + literal_.size();
    matches.push_back({found, done, true});
  }
  if (done < text.size()) matches.push_back({done, text.size(), false});
}

void ClassPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  const UnicodeTable& table = UnicodeTable::Get();
  bool extend = false;
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    const bool is_match = table.Is(code_point, classes_) != complement_;
    extend = extend && matches.back().is_match == is_match && (whole_runs_ || !is_match);
    if (extend) {
      matches.back().end = position + length;
    } else {
      matches.push_back({position, position + length, is_match});
    }
    extend = true;
    position += length;
  }
}

void WordOrSymbolsPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  const UnicodeTable& table = UnicodeTable::Get();
  int previous = -1;
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    const uint16_t classes = table.ClassOf(code_point);
    const int kind = (classes & kWord) ? 2 : (classes & kSpace) ? 0 : 1;
    if (kind == previous) {
      matches.back().end = position + length;
    } else {
      matches.push_back({position, position + length, kind != 0});
    }
    previous = kind;
    position += length;
  }
}

void FixedLengthPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    for (size_t i = 0; i < length_ && end < text.size(); ++i) end += CodePointAt(text, end).length;
    matches.push_back({begin, end, true});
    begin = end;
  }
}

std::unique_ptr<TextPattern> MakeLiteralPattern(const std::string& literal) {
  // An empty literal matches between any two characters; Oniguruma knows how.
  if (literal.empty()) return std::make_unique<OnigPattern>("");
  return std::make_unique<LiteralPattern>(literal);
}

std::unique_ptr<TextPattern> MakeRegexPattern(const std::string& regex) {
  if (const WordScanner* scanner = FindWordScanner(regex)) return std::make_unique<ScannerPattern>(*scanner);
  return std::make_unique<OnigPattern>(regex);
}

}  // namespace vllm
