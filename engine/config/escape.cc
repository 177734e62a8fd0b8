#include "engine/config/escape.h"

#include <cstdint>

namespace vllm {
namespace {

// Returns the length of the UTF-8 sequence at the start of `text` if it is well formed and printable, else 0.
size_t PrintableLength(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  auto is_tail = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  uint8_t lead = at(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  if (lead >= 0xc2 && lead <= 0xdf && is_tail(1)) return lead == 0xc2 && at(1) < 0xa0 ? 0 : 2;
  if ((lead & 0xf0) == 0xe0 && is_tail(1) && is_tail(2)) {
    bool overlong = lead == 0xe0 && at(1) < 0xa0;
    bool surrogate = lead == 0xed && at(1) >= 0xa0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4 && is_tail(1) && is_tail(2) && is_tail(3)) {
    bool overlong = lead == 0xf0 && at(1) < 0x90;
    bool too_large = lead == 0xf4 && at(1) >= 0x90;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::string Escape(std::string_view text, size_t max_bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    size_t length = PrintableLength(text);
    if (out.size() + length > max_bytes) return out + "...";
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
