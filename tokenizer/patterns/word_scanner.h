// Hand-written equivalents of the regular expressions with which nearly all byte-level tokenizers split text. They run
// in linear time without recursion. tests/tokenizer compares their matches with those of Oniguruma.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {

struct WordScanner {
  // The regular expression as model files write it, with line breaks escaped as \r and \n.
  std::string_view regex;
  // Returns the end of the match that starts at `position`, or `position` if there is none.
  // REQUIRES: position < text.size(), text is valid UTF-8.
  size_t (*match_end)(std::string_view text, size_t position);
};

// Returns the scanner for exactly this regular expression, or null.
const WordScanner* FindWordScanner(std::string_view regex);
// Returns all scanners, for the tests.
std::span<const WordScanner> AllWordScanners();
// Returns the scanner for GPT-2's regular expression, which the ByteLevel pre-tokenizer uses.
const WordScanner& Gpt2WordScanner();

class ScannerPattern : public TextPattern {
 public:
  explicit ScannerPattern(const WordScanner& scanner) : scanner_(scanner) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  const WordScanner& scanner_;
};

}  // namespace vllm::tokenizer
