// SpecialTexts: the texts of a tokenizer's special tokens, such as "<|im_end|>". The result of a tool must not contain
// them: the model would read a turn of the conversation where there is only text. Owned by ChatSession; main thread.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm::app {

class SpecialTexts {
 public:
  explicit SpecialTexts(const tokenizer::Tokenizer& tokenizer);

  // Returns `text` with a space after the first character of each special token.
  std::string Break(std::string text) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace vllm::app
