#include "tokenizer/formats/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {
namespace {

constexpr std::array<int8_t, 256> kDigits = [] {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return digits;
}();

}  // namespace

std::string DecodeBase64(std::string_view text, const std::string& where) {
  const auto fail = [&where] { throw TokenizerError("reading " + where + ": not valid base64"); };
  if (text.size() % 4 != 0) fail();
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    for (size_t j = 0; j < digits; ++j) {
      const int8_t digit = kDigits[static_cast<unsigned char>(text[i + j])];
      if (digit < 0) fail();
      group |= static_cast<uint32_t>(digit) << (18 - 6 * j);
    }
    for (size_t j = 0; j + 1 < digits; ++j) bytes += static_cast<char>(group >> (16 - 8 * j));
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

}  // namespace vllm::tokenizer
