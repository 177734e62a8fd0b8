#include "tokenizer/unicode/byte_level.h"

#include <array>

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

struct Alphabet {
  std::array<char32_t, 256> to_code_point;
  std::array<short, 0x144> to_byte;
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet{};
  for (auto& byte : alphabet.to_byte) byte = -1;
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const char32_t code_point = printable ? byte : next++;
    alphabet.to_code_point[byte] = code_point;
    alphabet.to_byte[code_point] = static_cast<short>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

char32_t ByteToAlphabet(unsigned char byte) { return kAlphabet.to_code_point[byte]; }

int AlphabetToByte(char32_t code_point) {
  return code_point < kAlphabet.to_byte.size() ? kAlphabet.to_byte[code_point] : -1;
}

void AppendByteLevel(std::string_view bytes, std::string& out) {
  // Every code point of the alphabet takes one or two bytes.
  const size_t start = out.size();
  out.resize(start + bytes.size() * 2);
  char* end = out.data() + start;
  for (const char c : bytes) end = EncodeCodePoint(kAlphabet.to_code_point[static_cast<unsigned char>(c)], end);
  out.resize(static_cast<size_t>(end - out.data()));
}

void AppendFromByteLevel(std::string_view token, std::string& out) {
  const size_t start = out.size();
  for (size_t position = 0; position < token.size();) {
    const auto [code_point, length] = CodePointAt(token, position);
    const int byte = AlphabetToByte(code_point);
    if (byte < 0) {
      out.resize(start);
      out.append(token);
      return;
    }
    out += static_cast<char>(byte);
    position += length;
  }
}

int ParseByteToken(std::string_view token) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const int high = digit(token[3]);
  const int low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace vllm::tokenizer
