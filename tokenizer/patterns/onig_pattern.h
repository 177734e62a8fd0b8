// A regular expression executed by Oniguruma, with the syntax and the search loop of Hugging Face `tokenizers`.
// Owned by the step of the tokenizer that searches for it. Read-only after construction, any thread.
// Every search has limits on backtracking and on its stack. If a search exceeds a limit, FindMatches reports no match
// up to the next whitespace character and continues after it. The pieces become longer, but nothing hangs or fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

struct re_pattern_buffer;

namespace vllm::tokenizer {

class OnigPattern : public TextPattern {
 public:
  // Throws TokenizerError if `regex` does not compile or is longer than 64 KiB.
  explicit OnigPattern(const std::string& regex);
  ~OnigPattern() override;
  OnigPattern(const OnigPattern&) = delete;
  OnigPattern& operator=(const OnigPattern&) = delete;

  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  re_pattern_buffer* regex_ = nullptr;
};

}  // namespace vllm::tokenizer
