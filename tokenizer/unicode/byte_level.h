// The two ways in which vocabularies write bytes: GPT-2's byte-level alphabet, which maps each of the 256 bytes to one
// printable code point of U+0021..U+0143, and SentencePiece's byte tokens "<0x00>".."<0xFF>".
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

// Returns the code point that represents `byte`.
char32_t ByteToAlphabet(unsigned char byte);
// Returns the byte that `code_point` represents, or -1.
int AlphabetToByte(char32_t code_point);

// Appends `bytes` in the byte-level alphabet.
void AppendByteLevel(std::string_view bytes, std::string& out);
// Appends the bytes that `token` represents. A token with a code point outside the alphabet is appended unchanged.
// REQUIRES: token is valid UTF-8.
void AppendFromByteLevel(std::string_view token, std::string& out);

// Returns the byte that a byte token represents, or -1. Accepts hexadecimal digits of either case.
int ParseByteToken(std::string_view token);

}  // namespace vllm::tokenizer
