// A regular expression run by Oniguruma, with the syntax and the search loop of Hugging Face `tokenizers`.
// Read-only after construction, any thread.
// A search is given limits on backtracking and on its stack. Where a text exceeds them, no match is reported up to the
// next white space after the place, and the search goes on from there: the pieces are longer, nothing hangs or fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

struct re_pattern_buffer;

namespace vllm {

class OnigPattern : public TextPattern {
 public:
  // Throws TokenizerError.
  explicit OnigPattern(const std::string& regex);
  ~OnigPattern() override;
  OnigPattern(const OnigPattern&) = delete;
  OnigPattern& operator=(const OnigPattern&) = delete;

  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  re_pattern_buffer* regex_ = nullptr;
};

}  // namespace vllm
