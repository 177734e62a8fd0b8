// The exceptions of the tokenizer. TokenizerError means that a tokenizer file cannot be read, is damaged or needs an
// unsupported feature. Its message is `<what failed> <which object>: <why>`, with bytes from the file escaped.
// Plain values and pure functions, any thread.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

class TokenizerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Tokenizer::Encode was stopped before it finished.
class EncodingStopped : public std::runtime_error {
 public:
  EncodingStopped() : std::runtime_error("tokenizing was stopped") {}
};

// Returns `bytes` in double quotes, truncated to 60 bytes. Double quotes, backslashes and bytes other than printable
// ASCII become \xHH.
std::string QuoteForError(std::string_view bytes);

}  // namespace vllm::tokenizer
