#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {

std::string QuoteForError(std::string_view bytes) {
  constexpr size_t kMaxBytes = 60;
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (size_t i = 0; i < bytes.size() && i < kMaxBytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
      quoted += bytes[i];
    } else {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    }
  }
  quoted += bytes.size() > kMaxBytes ? "...\"" : "\"";
  return quoted;
}

}  // namespace vllm::tokenizer
