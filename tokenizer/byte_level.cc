#include "tokenizer/byte_level.h"

#include <array>

#include "tokenizer/utf8.h"

namespace vllm {
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
  for (const char c : bytes) AppendCodePoint(ByteToAlphabet(static_cast<unsigned char>(c)), out);
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

}  // namespace vllm
