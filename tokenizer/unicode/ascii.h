// The case of ASCII letters. Other characters have no case here. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::tokenizer {

inline char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string LowerAscii(std::string_view text);

// Returns where `query` first occurs in `text` in any case, or npos. A query without ASCII letters, such as Chinese
// text, is found at the speed of memmem.
size_t FindIgnoringCase(std::string_view text, std::string_view query);

}  // namespace vllm::tokenizer
