#include "tokenizer/patterns/text_pattern.h"

#include <algorithm>

#include "tokenizer/patterns/onig_pattern.h"
#include "tokenizer/patterns/word_scanner.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

size_t LiteralPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const size_t batch_end = matches.size() + kBatch;
  size_t done = from;
  while (done < text.size() && matches.size() < batch_end) {
    const size_t found = text.find(literal_, done);
    if (found == text.npos) {
      matches.push_back({done, text.size(), false});
      return text.size();
    }
    if (found > done) matches.push_back({done, found, false});
    done = found + literal_.size();
    matches.push_back({found, done, true});
  }
  return done;
}

size_t LiteralStartPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const size_t batch_end = matches.size() + kBatch;
  size_t done = from;
  while (done < text.size() && matches.size() < batch_end) {
    const bool is_match = text.substr(done).starts_with(literal_);
    const size_t next = std::min(text.find(literal_, is_match ? done + literal_.size() : done), text.size());
    matches.push_back({done, next, is_match});
    done = next;
  }
  return done;
}

size_t ClassPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const UnicodeTable& table = UnicodeTable::Get();
  const size_t batch_end = matches.size() + kBatch;
  bool extend = false;
  size_t position = from;
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    const bool is_match = table.Is(code_point, classes_) != complement_;
    extend = extend && matches.back().is_match == is_match && (whole_runs_ || !is_match);
    if (extend) {
      matches.back().end = position + length;
    } else {
      if (matches.size() >= batch_end && matches.back().is_match) break;
      matches.push_back({position, position + length, is_match});
    }
    extend = true;
    position += length;
  }
  return position;
}

size_t WordOrSymbolsPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const UnicodeTable& table = UnicodeTable::Get();
  const size_t batch_end = matches.size() + kBatch;
  int previous = -1;
  size_t position = from;
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    const uint16_t classes = table.ClassOf(code_point);
    const int kind = (classes & kWord) ? 2 : (classes & kSpace) ? 0 : 1;
    if (kind == previous) {
      matches.back().end = position + length;
    } else {
      if (matches.size() >= batch_end && matches.back().is_match) break;
      matches.push_back({position, position + length, kind != 0});
    }
    previous = kind;
    position += length;
  }
  return position;
}

size_t FixedLengthPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const size_t batch_end = matches.size() + kBatch;
  size_t begin = from;
  while (begin < text.size() && matches.size() < batch_end) {
    size_t end = begin;
    for (size_t i = 0; i < length_ && end < text.size(); ++i) end += CodePointAt(text, end).length;
    matches.push_back({begin, end, true});
    begin = end;
  }
  return begin;
}

std::unique_ptr<TextPattern> MakeLiteralPattern(const std::string& literal) {
  if (literal.empty()) return std::make_unique<OnigPattern>("");
  return std::make_unique<LiteralPattern>(literal);
}

std::unique_ptr<TextPattern> MakeRegexPattern(const std::string& regex) {
  if (const WordScanner* scanner = FindWordScanner(regex)) return std::make_unique<ScannerPattern>(*scanner);
  return std::make_unique<OnigPattern>(regex);
}

}  // namespace vllm::tokenizer
