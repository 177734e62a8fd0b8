// GPT-2's printable alphabet for bytes: each of the 256 bytes is written as one code point of U+0021..U+0143.
// And the other way to write bytes, SentencePiece's byte tokens "<0x00>".."<0xFF>". Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// The code point that stands for `byte`.
char32_t ByteToAlphabet(unsigned char byte);
// The byte `code_point` stands for, or -1.
int AlphabetToByte(char32_t code_point);

void AppendByteLevel(std::string_view bytes, std::string& out);
// Appends the bytes that `token` stands for; a token with a code point outside the alphabet stands for itself.
// REQUIRES: token is valid UTF-8.
void AppendFromByteLevel(std::string_view token, std::string& out);

// The byte that a byte token stands for, or -1; hexadecimal digits of either case.
int ParseByteToken(std::string_view token);

}  // namespace vllm
