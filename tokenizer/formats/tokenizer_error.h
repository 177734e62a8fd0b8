// The exceptions of this module. TokenizerError means that a tokenizer file is damaged or needs an unsupported feature.
// Its text is `<what failed> <which object>: <why>`. Bytes from the file are escaped in it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

class TokenizerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Encode was stopped before it finished.
class EncodingStopped : public std::runtime_error {
 public:
  EncodingStopped() : std::runtime_error("tokenizing was stopped") {}
};

// Returns `bytes` in quotation marks, cut after 60 bytes. Quotes, backslashes and bytes other than printable ASCII
// become \xHH.
std::string QuoteForError(std::string_view bytes);

}  // namespace vllm::tokenizer
