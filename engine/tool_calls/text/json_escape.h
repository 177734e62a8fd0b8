// Writes the contents of JSON strings. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

// Appends the byte with the escape that it needs inside a JSON string. The caller may pass the bytes of a UTF-8
// character one at a time.
void AppendJsonEscaped(char c, std::string& out);
void AppendJsonEscaped(std::string_view text, std::string& out);
// Returns `text` as a JSON string with quotes.
std::string JsonStringText(std::string_view text);
// Appends the UTF-8 encoding of a code point; U+FFFD for surrogates and values above 0x10FFFF.
void AppendScalarValue(uint32_t code_point, std::string& out);
// Returns the value of a hexadecimal digit, or -1.
int HexDigit(char c);
// White space between the tokens of a call.
inline bool IsCallSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace vllm
