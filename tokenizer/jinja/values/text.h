// Python's view of UTF-8 text: code points, whitespace and line ends. Pure functions, any thread.
// A byte that is not UTF-8 counts as one code point (U+FFFD) and is passed on unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::jinja {

// Reads the code point at `position` and moves behind it. REQUIRES: position < text.size().
char32_t NextCodePoint(std::string_view text, size_t& position);
// Offset of the last code point. REQUIRES: text is not empty.
size_t LastCodePoint(std::string_view text);
size_t NumCodePoints(std::string_view text);
// Byte offset of code point `index`; text.size() when there are not so many.
size_t CodePointOffset(std::string_view text, size_t index);

bool IsSpace(char32_t code_point);
bool IsDigit(char32_t code_point);
// False for what Python's repr() escapes.
bool IsPrintable(char32_t code_point);

std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);
// Removes every leading / trailing code point that is in `chars`.
std::string_view StripLeft(std::string_view text, std::string_view chars);
std::string_view StripRight(std::string_view text, std::string_view chars);

// str.splitlines().
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends = false);

// Linear-time searches; npos when absent. SearchCost is what a search is worth in bytes looked at once: a long needle
// that almost matches costs many times a short one.
size_t SearchCost(std::string_view text, std::string_view needle);
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
size_t FindTextLast(std::string_view text, std::string_view needle);

// markupsafe.escape.
std::string EscapeHtml(std::string_view text);

}  // namespace vllm::jinja
