// What loading a tokenizer throws: the file is damaged, or asks for something this program does not do.
// The text is `<what failed> <which object>: <why>`; bytes that come from the file are escaped in it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace vllm {

class TokenizerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Encode was asked to stop before it was done.
class EncodingStopped : public std::runtime_error {
 public:
  EncodingStopped() : std::runtime_error("tokenizing was stopped") {}
};

// `bytes` between quotation marks, everything but printable ASCII written as \xHH, cut after 60 bytes.
std::string QuoteForError(std::string_view bytes);

}  // namespace vllm
