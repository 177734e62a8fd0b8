// Where a text changes from one script to another, for the pre-tokenizer UnicodeScripts: Han, Hiragana and Katakana
// count as one script; spaces and characters without a script go with what stands before them, and are dropped in
// front. Read-only after construction, any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

class ScriptPattern : public TextPattern {
 public:
  ScriptPattern();
  // Matches are the pieces of one script.
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;
};

}  // namespace vllm
