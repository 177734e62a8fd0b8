// Hand-written, linear equivalents of the regular expressions that nearly all byte-level tokenizers split words with.
// They agree with Oniguruma on every text (tests/tokenizer holds them together), never backtrack and use no stack.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

struct WordScanner {
  // As files write it, but that line breaks in it are written \r and \n.
  std::string_view regex;
  // End of the match that starts at `position`, or `position` when none does. REQUIRES: position < text.size(), text is
  // valid UTF-8.
  size_t (*match_end)(std::string_view text, size_t position);
};

// The scanner for exactly this regular expression, or null.
const WordScanner* FindWordScanner(std::string_view regex);
// All of them, for the tests.
std::span<const WordScanner> AllWordScanners();
// The expression of GPT-2, which the ByteLevel pre-tokenizer uses by itself.
const WordScanner& Gpt2WordScanner();

class ScannerPattern : public TextPattern {
 public:
  explicit ScannerPattern(const WordScanner& scanner) : scanner_(scanner) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  const WordScanner& scanner_;
};

}  // namespace vllm
