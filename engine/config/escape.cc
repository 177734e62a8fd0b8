#include "engine/config/escape.h"

#include <cstdint>

#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

// Returns the length of the UTF-8 sequence at the start of `text` if it is well formed and printable, else 0.
size_t PrintableLength(std::string_view text) {
  const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, 0);
  if (step.kind != tokenizer::Utf8Step::Kind::kValid) return 0;
  const bool is_control = step.code_point < 0x20 || (step.code_point >= 0x7f && step.code_point < 0xa0);
  return is_control ? 0 : step.length;
}

}  // namespace

std::string Escape(std::string_view text, size_t max_bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr size_t kEscapeBytes = 4;  // \xhh
  std::string out;
  while (!text.empty()) {
    size_t length = PrintableLength(text);
    if (out.size() + (length == 0 ? kEscapeBytes : length) > max_bytes) return out + "...";
    if (length == 0) {
      uint8_t byte = static_cast<uint8_t>(text[0]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace vllm
