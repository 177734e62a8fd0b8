// Python's letters and letter case: str.isalpha, upper, lower, casefold, title, capitalize, swapcase.
// Pure functions, any thread. A byte that is not part of valid UTF-8 becomes U+FFFD in converted text.
#pragma once

#include <string>
#include <string_view>

namespace vllm::tokenizer::jinja {

bool IsAlpha(char32_t code_point);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);

// One code point may become two or three: ToUpper("ß") is "SS".
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string CaseFold(std::string_view text);
std::string Capitalize(std::string_view text);
std::string TitleCase(std::string_view text);
std::string SwapCase(std::string_view text);

}  // namespace vllm::tokenizer::jinja
