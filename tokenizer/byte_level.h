// GPT-2's printable alphabet for bytes: each of the 256 bytes is written as one code point of U+0021..U+0143.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

// The code point that stands for `byte`.
char32_t ByteToAlphabet(unsigned char byte);
// The byte `code_point` stands for, or -1.
int AlphabetToByte(char32_t code_point);

void AppendByteLevel(std::string_view bytes, std::string& out);
// Appends the bytes that `token` stands for; a token with a code point outside the alphabet stands for itself.
// REQUIRES: token is valid UTF-8.
void AppendFromByteLevel(std::string_view token, std::string& out);

}  // namespace vllm
