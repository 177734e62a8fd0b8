// Python's view of UTF-8 text: code points, whitespace and line ends. Pure functions, any thread.
// A byte that is not part of valid UTF-8 counts as one code point, U+FFFD. Functions that return a part of the text
// keep such bytes unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer::jinja {

// Returns the code point at `position` and advances past it. REQUIRES: position < text.size().
char32_t NextCodePoint(std::string_view text, size_t& position);
// Returns the byte offset of the last code point. REQUIRES: text is not empty.
size_t LastCodePoint(std::string_view text);
size_t NumCodePoints(std::string_view text);
// Returns the byte offset of code point `index`, or text.size() if the text has fewer code points.
size_t CodePointOffset(std::string_view text, size_t index);

bool IsSpace(char32_t code_point);
// ASCII digits only.
bool IsDigit(char32_t code_point);
// Returns false for characters that Python's repr() escapes.
bool IsPrintable(char32_t code_point);

std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);
// Removes every leading or trailing code point that is in `chars`.
std::string_view StripLeft(std::string_view text, std::string_view chars);
std::string_view StripRight(std::string_view text, std::string_view chars);

// Python's str.splitlines().
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends = false);

// Linear-time searches that return npos if the needle is absent. SearchCost returns the cost of a search, for
// Budget::SpendBytes. Needles of more than 64 bytes cost 8 times as much per byte, because they may almost match
// everywhere.
size_t SearchCost(std::string_view text, std::string_view needle);
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
size_t FindTextLast(std::string_view text, std::string_view needle);

// markupsafe.escape.
std::string EscapeHtml(std::string_view text);

}  // namespace vllm::tokenizer::jinja
